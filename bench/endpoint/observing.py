"""python -m bench.endpoint.observing [--bodies N]

Bodies that are written in every way that JSON allows, on all APIs, streamed and whole,
through the endpoint to a provider that notes what came: is each byte of the body and of
the answer the same? Then 200 clients at once, and the audit.
"""

import argparse
import asyncio
import hashlib
import itertools
import json
import sys
import time
from collections import Counter
from random import Random
from typing import Any

import aiohttp

from .place import make_place
from .provider import Provider
from .wires import PATHS, Said, write_body

# A user has slots for 64 concurrent requests.
AT_ONCE, CROWD, PEOPLE = 6, 200, 4
# Bodies between two lines of progress.
OFTEN = 500
TEXTS = (
    "Hello",
    "Ünïcode 你好 🙂",
    "two\nlines\t",
    'a "quote" \\ slash',
    "\u2028 é",
    "",
)
EXTRAS: tuple[tuple[str, Any], ...] = (
    ("temperature", 1.0),
    ("metadata", {"a": None, "b": [1, 2.50, 1e3, -0.0]}),
    ("x_unknown", "ü" * 600),
    ("top_p", 1e-5),
    ("seed", 12345678901234567890),
)


def make_body(random: Random, number: int) -> tuple[str, bytes]:
    """Return an API's name and a body that is different from all others."""
    wire = random.choice([*PATHS])
    said = []
    for place in range(random.choice((1, 1, 3, 5))):
        role = "assistant" if place % 2 else "user"
        text = f"{number} {place} {random.choice(TEXTS)}" * random.choice((1, 1, 40))
        said.append(Said(role, text, pieces=random.choice((0, 0, 2))))
    body = write_body(wire, "Be brief.", said, "m")
    body |= dict(random.sample(EXTRAS, k=random.randrange(3)))
    body["stream"] = random.random() < 0.7
    items = [*body.items()]
    random.shuffle(items)
    written = json.dumps(
        dict(items),
        ensure_ascii=random.random() < 0.5,
        indent=random.choice((None, None, 2, "\t")),
        separators=random.choice(((",", ":"), (", ", ": "), (" ,", " :  "))),
    )
    return wire, (
        random.choice(("", "\n ")) + written + random.choice(("", "\r\n"))
    ).encode()


class Observing:
    def __init__(self, provider: Provider, url: str, keys: list[str]) -> None:
        self.provider, self.url = provider, url
        self.keys = itertools.cycle(keys)
        self.counts: Counter[str] = Counter()

    async def check(
        self, session: aiohttp.ClientSession, wire: str, raw: bytes
    ) -> None:
        address, name = f"{self.url}/v1{PATHS[wire]}", hashlib.sha256(raw).hexdigest()
        headers = {"authorization": f"Bearer {next(self.keys)}"}
        headers["content-type"] = "application/json"
        async with session.post(address, data=raw, headers=headers) as answer:
            told = await answer.read()
            status = answer.status
            said = answer.headers.get("x-windowpane-request-sha256")
        sent = self.provider.answers.pop(name, None)
        if status == 429:
            self.counts["refused"] += 1
        elif status != 200:
            self.counts[f"status {status}"] += 1
        elif sent is None or said != name:
            self.counts["another body"] += 1
        else:
            self.counts["same" if told == sent else "another answer"] += 1

    async def run(self, bodies: list[tuple[str, bytes]], at_once: int) -> float:
        """Send the bodies, `at_once` concurrently; return the seconds it took."""
        todo, started = iter(bodies), time.monotonic()
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def work() -> None:
                for wire, raw in todo:
                    await self.check(session, wire, raw)
                    if (done := self.counts.total()) % OFTEN == 0:
                        print(f"{done} of {len(bodies)}", file=sys.stderr, flush=True)

            await asyncio.gather(*(work() for _ in range(at_once)))
        return time.monotonic() - started


async def observe(count: int) -> None:
    async with Provider().running() as provider:
        with make_place(provider.url, people=PEOPLE) as place:
            random = Random(7)
            observing = Observing(provider, place.site.url, place.keys[:1])
            bodies = [make_body(random, number) for number in range(count)]
            seconds = await observing.run(bodies, AT_ONCE)
            print(f"{count} bodies: {dict(observing.counts)}, {seconds:.0f} s")
            crowd = Observing(provider, place.site.url, place.keys)
            bodies = [make_body(random, count + number) for number in range(CROWD)]
            seconds = await crowd.run(bodies, CROWD)
            print(f"{CROWD} at once: {dict(crowd.counts)}, {seconds:.1f} s")
            print(place.site.manage("audit").strip().splitlines()[-1])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bodies", type=int, default=10_000)
    asyncio.run(observe(parser.parse_args().bodies))
