"""python -m bench.endpoint.thread_ends [--moments N] [--conversations N]

Threads that the provider holds end at random moments, between and within streamed
turns: they expire, the provider is killed (SIGKILL), or the site is. Anthropic's SDK,
unchanged, sends the turn again. It has to go on in the same conversation, with the
words of no other one. "moved" counts turns that went on in a branch with all of their
history instead: nothing is lost, but the conversation is in two places.
"""

import argparse
import json
import random
import re
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import anthropic

from tests.fakes.held_threads import HeldState
from tests.fakes.upstream import Upstream
from tests.servers import Server, answers

from .held_state import LOOK
from .place import START, Place, make_place

# Threads expire after so many seconds; a turn takes about TURN of them.
EXPIRY, TURN, PACE = 2.0, 1.0, 0.08
KINDS = ("expiry", "provider", "provider", "site")
# A client asks again after so many seconds, as long as a start may take.
PAUSE = 0.5
ASKED = {"model": "claude-sonnet-5-5", "max_tokens": 50}


class TimedState(HeldState):
    """The provider's state, whose clock is that of the machine."""

    @property
    def now(self) -> float:
        return time.monotonic()

    @now.setter
    def now(self, seconds: float) -> None:
        """A dataclass sets it once."""


class Provider(Server):
    """The provider as a process of its own, which can be killed."""

    name = "provider"
    start_timeout = START

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        return [sys.executable, "-m", __spec__.name, "--provider", str(self.port)]

    def is_ready(self) -> bool:
        return answers(f"{self.url}/v1/models")


class Talk:
    """One thread of the SDK, and the conversations that the site named for it."""

    def __init__(self, name: str, place: Place) -> None:
        self.name = name
        client = anthropic.Anthropic(base_url=place.site.url, api_key=place.keys[0])
        self.thread = client.beta.messages.thread(**ASKED, system="You answer.")
        self.turns = 0
        self.found: Counter[str] = Counter()
        self.conversation = ""

    def take_turn(self, pause: float) -> None:
        time.sleep(pause)
        self.turns += 1
        text = f"{self.name}: turn {self.turns}?"
        end = time.monotonic() + START
        while time.monotonic() < end:
            said = [each["content"] for each in self.thread.messages]
            # A turn that has begun to be answered is sent again without its words.
            given = [] if text in said else [{"role": "user", "content": text}]
            try:
                with self.thread.stream(*given) as stream:
                    self.note(stream.response.headers)
                    stream.get_final_message()
                return
            except Exception as error:  # noqa: BLE001  (of three libraries)
                self.found[type(error).__name__] += 1
                time.sleep(PAUSE)
        raise RuntimeError(f"{text} has no answer: {self.found}")

    def note(self, headers: dict[str, str]) -> None:
        self.found[headers["x-windowpane-lineage"]] += 1
        now = headers["x-windowpane-conversation"]
        self.found["moved"] += self.conversation not in ("", now)
        self.conversation = now


def end_threads(kind: str, place: Place, provider: Provider) -> None:
    if kind == "expiry":
        time.sleep(EXPIRY)
        return
    server = provider if kind == "provider" else place.site
    server.kill()
    server.start()


def run_ends(
    moments: int, talks: list[Talk], place: Place, provider: Provider
) -> Counter[str]:
    """End each conversation's thread at a random moment of its turn, or beside it."""
    chosen, kinds = random.Random(7), Counter()
    with ThreadPoolExecutor(len(talks)) as pool:
        while kinds.total() < moments:
            kind = chosen.choice(KINDS)
            running = [
                pool.submit(talk.take_turn, chosen.uniform(0, TURN)) for talk in talks
            ]
            time.sleep(chosen.uniform(0, 2.5 * TURN))
            end_threads(kind, place, provider)
            for each in running:
                each.result()
            kinds[kind] += 1
            print(kinds.total(), dict(kinds), flush=True)
    return kinds


def find_faults(site: str, talks: list[Talk]) -> list[str]:
    conversations, requests = json.loads(site)
    faults, asked = [], []
    for _, *texts in conversations:
        # The text of an interrupted reply may end before its name.
        names = {name for text in texts for name in re.findall(r"talk-\d+", text)}
        faults += [] if len(names) == 1 else [f"mixed: {sorted(names)}"]
        asked.append([text for text in texts if text.startswith("talk-")])
    for talk in talks:
        turns = [f"{talk.name}: turn {n + 1}?" for n in range(talk.turns)]
        faults += [] if turns in asked else [f"not whole: {talk.name}"]
    faults += [f"no proof: {each}" for each in requests if not each["is_proved"]]
    held = [each for each in requests if each["is_held"]]
    faults += [f"held: {each}" for each in held if not each["is_held_proved"]]
    print(f"{len(conversations)} conversations of {len(talks)} talks, ", end="")
    print(f"{len(requests)} requests, {len(held)} of them held")
    return faults


def serve(port: int) -> None:
    server = Upstream(port)
    server.held = TimedState(EXPIRY, pace=PACE)
    with server:
        Event().wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moments", type=int, default=200)
    parser.add_argument("--conversations", type=int, default=4)
    parser.add_argument("--provider", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.provider:
        serve(given.provider)
    with Provider() as provider:
        times = {"TURN_LEASE_SECONDS": "3", "TURN_SWEEP_SECONDS": "0.5"}
        with make_place(provider.url, **times) as place:
            talks = [
                Talk(f"talk-{number}", place) for number in range(given.conversations)
            ]
            kinds = run_ends(given.moments, talks, place, provider)
            lines = place.site.manage("shell", "-c", LOOK).splitlines()
            audit = place.site.manage("audit").strip()
    look = next(line for line in lines if line.startswith("LOOK"))
    faults = find_faults(look.removeprefix("LOOK"), talks)
    faults += [] if audit == "clean" else [f"audit: {audit}"]
    print(dict(kinds), dict(sum((each.found for each in talks), Counter())))
    print(*(faults or ["no fault"]), sep="\n")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
