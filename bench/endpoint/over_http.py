"""python -m bench.endpoint.over_http [--talks N] [--seed N]

The talks of bench/endpoint/identity.py through a site of its own, over HTTP: a server
process, its database, and a provider on all wires that says what a model could say.
Then the site's audit.
"""

import argparse
import sys
from random import Random
from typing import Any

from tests.fakes import wires
from tests.fakes.upstream import Exchange, Upstream

from .identity import HttpTarget, print_counts, run_talks
from .place import make_place
from .talks import make_reply
from .wires import PATHS, Said


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
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--people", type=int, choices=(1, 2), default=2)
    parser.add_argument("--wire", action="append", choices=PATHS)
    parser.add_argument("--previous", action="store_true")
    given = parser.parse_args()
    provider = TalkProvider()
    more = {"ANTHROPIC_BASE_URL": provider.url.removesuffix("/v1")}
    with provider, make_place(provider.url, people=given.people, **more) as place:
        url, previous = f"{place.site.url}/v1", given.previous
        target = HttpTarget(url, place.keys, names_previous=previous)
        wanted = given.wire or tuple(PATHS)
        chosen = {"seed": given.seed, "people": given.people, "wires": wanted}
        judge = run_talks(target, given.talks, **chosen)
        audit = place.site.manage("audit")
    print_counts(judge)
    for title, lines in (("wrong", judge.wrong), ("missed", judge.missed)):
        print(f"\n{title}: {len(lines)}", *lines[:10], sep="\n")
    print(f"\n{audit.strip()}")
    return 1 if judge.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
