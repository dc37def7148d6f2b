"""python -m bench.endpoint.held_state [--folder FOLDER]

OpenAI's and Anthropic's SDK, unchanged, leave conversations to a provider that holds
them: threads and responses, streamed, with tools, expired, lost, continued twice, at
once, and by another user. Then what the site kept is compared with what the provider
has read. The SDKs are installed below FOLDER once, in pinned versions.
"""

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from bench import environments
from tests.fakes import wires
from tests.fakes.held_threads import HeldState, count
from tests.fakes.upstream import Upstream

from .place import make_place

CLIENTS = Path(__file__).parent / "clients"
# Conversations by the name in their first message; forks and races are branches.
EXPECTED = {
    **dict.fromkeys(
        ("thread", "stream", "tools", "expired", "owner", "bound tools"), 1
    ),
    **{"forked": 2, "at once": 2, "responses": 2},
}
LOOK = """
import json
from chatsite.contrib.endpoint.models import ClientRequest
from memory.models import Conversation
from memory.view import rebuilding
talks = [
    [each.owner.username, *each.messages.order_by("seq").values_list("text", flat=True)]
    for each in Conversation.objects.select_related("owner")
]
requests = []
for asked in ClientRequest.objects.select_related("call"):
    built = rebuilding.rebuild_context(asked.call)
    held = built.read_held() if built.read_held else None
    requests.append({
        "is_proved": rebuilding.verify_context(asked.call),
        "is_held": bool(held), "is_held_proved": bool(held and held.is_proved),
        "is_sum": sum(n for _, n in built.parts) == asked.call.tokens_estimated,
        "reported": asked.call.tokens_input or 0,
    })
print("LOOK" + json.dumps([talks, requests]))
"""


def make_calls() -> list[wires.Reply]:
    first = [wires.Call("add", '{"x": 1}'), wires.Call("add", '{"x": 2}')]
    second = wires.Reply("Once more.", [wires.Call("add", '{"x": 3}')])
    return [wires.Reply("", first), second, wires.Reply("Done.")]


def run_sdks(python: Path, held: HeldState, site: str, keys: list[str]) -> str:
    """Run the script of the SDKs; return its last line."""
    command = [str(python), str(CLIENTS / "held_threads.py"), site, *keys]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    line = ""
    with subprocess.Popen(command, **pipes) as script:
        for line in script.stdout:
            if line.startswith("CONTROL expire"):
                held.now += held.seconds + 1
            elif line.startswith("CONTROL forget"):
                held.forget_all()
            elif line.startswith("CONTROL tools"):
                held.replies += make_calls()
            script.stdin.write("\n")
            script.stdin.flush()
    return line.strip()


def find_faults(
    talks: list[list[str]], requests: list[dict[str, Any]], held: HeldState
) -> list[str]:
    names = Counter(first.partition(":")[0] for _, first, *_ in talks)
    faults = [] if names == EXPECTED else [f"conversations: {names}"]
    faults += [f"of another user: {talk}" for talk in talks if talk[0] != "user0"]
    for name in ("is_proved", "is_sum"):
        faults += [f"not {name}: {each}" for each in requests if not each[name]]
    kept = [each for each in requests if each["is_held"]]
    faults += [f"held: {each}" for each in kept if not each["is_held_proved"]]
    read = sum(count(said) + count(setup) for _, said, setup in held.read)
    billed = sum(each["reported"] for each in requests)
    return faults if read == billed else [*faults, f"billed {billed} of {read}"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(".venv-clients"))
    folder = parser.parse_args().folder.resolve() / "py"
    python = environments.make(folder, CLIENTS / "requirements.txt")
    with Upstream() as provider:
        held = provider.held = HeldState()
        more = {"ANTHROPIC_BASE_URL": provider.url.removesuffix("/v1")}
        with make_place(provider.url, people=2, **more) as place:
            end = run_sdks(python, held, place.site.url, place.keys)
            lines = place.site.manage("shell", "-c", LOOK).splitlines()
            audit = place.site.manage("audit").strip()
    look = next(line for line in lines if line.startswith("LOOK"))
    talks, requests = json.loads(look.removeprefix("LOOK"))
    faults = find_faults(talks, requests, held)
    faults += [] if end == "DONE" else [f"the SDKs ended with {end!r}"]
    faults += [] if audit == "clean" else [f"audit: {audit}"]
    kept = sum(each["is_held"] for each in requests)
    print(f"{len(talks)} conversations, {len(requests)} requests, {kept} of them held")
    print(*(faults or ["no fault"]), sep="\n")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
