"""python -m bench.endpoint.over_http [--talks N]

The talks of bench/endpoint/identity.py through a site of its own, over HTTP: a server
process, its database, and a provider on all wires that says what a model could say.
Then the site's audit.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from random import Random
from typing import Any

from bench.page import USER, running_site
from tests.fakes import wires
from tests.fakes.upstream import Exchange, Upstream

from .identity import HttpTarget, print_counts, run_talks
from .talks import make_reply
from .wires import PATHS, Said

# For one client that sends as fast as it can.
LIMITS = {"MESSAGES_PER_MINUTE": "100000", "CONVERSATIONS_PER_MINUTE": "100000"}


class TalkProvider(Upstream):
    # Clients send results in any order.
    is_strict = False

    def next_mode(self, body: dict[str, Any]) -> Any:
        return self.answer

    def answer(self, x: Exchange) -> None:
        wire = wires.find_wire(x.handler.path)
        role, text = wires.list_said(wire, x.body)[-1]
        # Of two equal requests the replies differ, as those of models do.
        random = Random(len(self.requests))
        said = make_reply([Said(role, text)], random)
        calls = [wires.Call(each.name, each.arguments, each.id) for each in said.calls]
        model = str(x.body.get("model"))
        reply = wires.Reply(said.text, calls)
        x.send_json(wires.write_whole(wire, model, reply))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.endpoint.over_http", description=__doc__
    )
    parser.add_argument("--talks", type=int, default=84)
    parser.add_argument("--people", type=int, choices=(1, 2), default=2)
    parser.add_argument("--wire", action="append", choices=PATHS)
    parser.add_argument("--previous", action="store_true")
    given = parser.parse_args()
    provider = TalkProvider()
    more = {**LIMITS, "ANTHROPIC_BASE_URL": provider.url.removesuffix("/v1")}
    with (
        tempfile.TemporaryDirectory() as folder,
        provider,
        running_site(Path(folder), provider.url, **more) as site,
    ):
        site.manage("create_user", "other", "only-for-this-bench")
        keys = [site.manage("create_key", name).strip() for name in (USER, "other")]
        target = HttpTarget(f"{site.url}/v1", keys, names_previous=given.previous)
        wanted = given.wire or tuple(PATHS)
        judge = run_talks(target, given.talks, people=given.people, wires=wanted)
        site.manage("audit")
    print_counts(judge)
    for title, lines in (("wrong", judge.wrong), ("missed", judge.missed)):
        print(f"\n{title}: {len(lines)}", *lines[:10], sep="\n")
    return 1 if judge.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
