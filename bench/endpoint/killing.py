"""python -m bench.endpoint.killing [--kills N] [--streams N] [--minutes N]

Kills the process (SIGKILL) at random moments while clients stream, starts it again, and
compares what each client was sent with the transcript: all but the last second's has to
be there, marked as interrupted, and the audit clean.
"""

import argparse
import asyncio
import json
import os
import sqlite3
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import accumulate
from math import inf
from random import Random

import aiohttp

from .place import Place, make_place
from .provider import Provider

WORDS, PACE = 120, 0.05
BEHIND = 1.0
LEASE = 3
# Seconds that each stream was behind.
behinds: list[float] = []
# When this process woke up from short sleeps, and how late: on a busy machine, the site
# is late, too.
BEAT, LATE = 0.01, 0.05
wakes: list[tuple[float, float]] = []
ENDED = "SELECT state, error, text FROM chat_turn ORDER BY id DESC LIMIT ?"


@dataclass
class Stream:
    """The words that a client was sent, each with its time."""

    pieces: list[tuple[float, str]] = field(default_factory=list)
    has_begun: asyncio.Event = field(default_factory=asyncio.Event)

    def moment_of(self, place: int) -> float:
        """Return the time at which the character at this place was received."""
        ends = accumulate(len(text) for _, text in self.pieces)
        return next(
            at for end, (at, _) in zip(ends, self.pieces, strict=True) if end > place
        )

    @property
    def text(self) -> str:
        return "".join(text for _, text in self.pieces)


async def follow(place: Place, name: str, stream: Stream) -> None:
    try:
        await read_stream(place, name, stream)
    except aiohttp.ClientError:
        pass  # the process was killed
    finally:
        stream.has_begun.set()


async def read_stream(place: Place, name: str, stream: Stream) -> None:
    body = {"model": "m", "stream": True}
    body["messages"] = [{"role": "user", "content": f"Tell me of {name}."}]
    headers = {"authorization": f"Bearer {place.keys[0]}"}
    address = f"{place.site.url}/v1/chat/completions"
    async with (
        aiohttp.ClientSession() as session,
        session.post(address, json=body, headers=headers) as answer,
    ):
        async for line in answer.content:
            if line.startswith(b"data: {"):
                choices = json.loads(line[6:])["choices"]
                text = choices[0]["delta"].get("content") if choices else ""
                stream.pieces.append((time.monotonic(), text or ""))
                stream.has_begun.set()


async def beat() -> None:
    while True:
        due = time.monotonic() + BEAT
        await asyncio.sleep(BEAT)
        wakes.append((now := time.monotonic(), now - due))


async def kill_once(place: Place, number: int, streams: int, random: Random) -> Counter:
    begun = [Stream() for _ in range(streams)]
    tasks = [
        asyncio.create_task(follow(place, f"{number}-{at}", each))
        for at, each in enumerate(begun)
    ]
    for each in begun:
        await each.has_begun.wait()
    await asyncio.sleep(random.uniform(0, WORDS * PACE))
    killed = time.monotonic()
    was_late = any(late > LATE for at, late in wakes if at > killed - 2 * BEHIND)
    wakes.clear()
    place.site.kill()
    await asyncio.gather(*tasks)
    await asyncio.to_thread(place.site.start)
    rows = await wait_until_ended(place, streams)
    found: Counter[str] = Counter()
    for each in begun:
        if not (whole := each.text):
            found["refused"] += 1
            continue
        row = max(rows, key=lambda row: count_same(row[2], whole))
        kept = count_same(row[2], whole)
        found["streams"] += 1
        found["cut, and marked"] += row[0] == "interrupted"
        found["whole"] += row[0] == "done" and kept == len(whole)
        if row[0] not in ("interrupted", "done"):
            found[f"ended as {row[0]} {row[1]}"] += 1
        behind = killed - each.moment_of(kept) if kept < len(whole) else 0.0
        if behind > BEHIND:
            found["more than a second behind"] += 1
            found["of these on a machine that was late"] += was_late
        behinds.append(max(behind, 0.0))
    return found


def count_same(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    ends = (at for at, (a, b) in pairs if a != b)
    return next(ends, min(len(one), len(other)))


async def wait_until_ended(place: Place, streams: int) -> list[tuple[str, str, str]]:
    path = place.site.env["DATABASE_URL"].removeprefix("sqlite:///")
    while True:
        with sqlite3.connect(path, timeout=30) as database:
            rows = database.execute(ENDED, [streams]).fetchall()
        if not any(state in ("running", "queued") for state, *_ in rows):
            return rows
        await asyncio.sleep(0.1)


async def kill_often(
    kills: int, streams: int, minutes: float = inf
) -> tuple[Counter, str]:
    """Kill the site repeatedly; return the counts and the last line of the audit."""
    end = time.monotonic() + minutes * 60
    random, found = Random(11), Counter()
    async with Provider(words=WORDS, pace=PACE).running() as provider:
        beating = asyncio.create_task(beat())
        times = {"TURN_LEASE_SECONDS": str(LEASE), "TURN_SWEEP_SECONDS": "0.5"}
        with make_place(provider.url, **times) as place:
            for number in range(kills):
                found += await kill_once(place, number, streams, random)
                print(number + 1, dict(found), flush=True)
                if time.monotonic() > end:
                    break
            beating.cancel()
            return found, place.site.manage("audit").strip().splitlines()[-1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=25)
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--minutes", type=float, default=inf)
    options = parser.parse_args()
    _, audit = asyncio.run(kill_often(**vars(options)))
    behinds.sort()
    shares = (0.5, 0.95, 0.99)
    places = [f"{behinds[int(len(behinds) * at)]:.2f}" for at in shares]
    print(f"seconds behind, p50 p95 p99 most: {' '.join(places)} {behinds[-1]:.2f}")
    print(f"load: {os.getloadavg()[1]:.1f}", audit, sep="\n")
