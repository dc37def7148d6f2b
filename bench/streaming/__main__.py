"""Replies streamed at once: processor time per word, how late words are, and how long
the first one takes, on this site and on others, in one run.

python -m bench.streaming [--streams 50] [--rounds 3] [--words 160] [--only NAMES]
                          [--messages 10] [--idle N] [--burst | --knee | --turns N]

--burst lets everybody send in the same moment, not within a second; --knee looks for
the most streams whose words are still in time; --turns is one user alone, N turns one
after another; --idle plays each round once more while N other users only look on.
"""

import argparse
import asyncio
import os
import statistics
from collections import defaultdict
from dataclasses import dataclass
from time import monotonic

from .clients import Person, ReplyTimes, ask_all
from .contestants import Contestant, Upstream, all_of_them

NAMES = ("raw", "langchain", "chainlit", "sqlite", "postgresql")
# Longer than this is seen.
LATE = 100.0
MOST_STREAMS = 640
WARM_UP_TURNS = 3
IDLE_SECONDS = 20


@dataclass(frozen=True)
class Figures:
    """The figures of one round. Times in milliseconds, processor time in
    microseconds.
    """

    cpu_per_word: float
    late: float
    first: float
    first_late: float
    wrong: int

    @classmethod
    def of(cls, readings: list[ReplyTimes], cpu: float, words: int) -> "Figures":
        late = [value for reading in readings for value in reading.late]
        first = [reading.first_over_upstream for reading in readings]
        return cls(
            cpu / (len(readings) * words) * 1e6,
            percentile(late, 95),
            statistics.median(first),
            percentile(first, 95),
            sum(not reading.is_whole for reading in readings),
        )


def percentile(values: list[float], percent: int) -> float:
    return statistics.quantiles(values, n=100)[percent - 1] if values[1:] else values[0]


async def play(
    contestant: Contestant, streams: int, words: int, spread: float, idle: int = 0
) -> Figures:
    """One round: everybody opens a socket, sends one message and reads the reply. So
    many `idle` ones have only opened theirs."""
    seats = await asyncio.to_thread(contestant.seats, streams + 1 + idle)
    everybody: list[Person] = [contestant.person(seat, words) for seat in seats]
    for person in everybody:
        await person.enter()
    people = everybody[:streams]
    # The first reply of a process imports and connects.
    await everybody[streams].ask()
    await asyncio.sleep(2)  # what pages are sent when they open is no part of it
    cpu = contestant.cpu_seconds()
    readings = await ask_all(people, spread)
    await asyncio.sleep(2)  # what a reply leaves behind is part of it
    cpu = contestant.cpu_seconds() - cpu
    for person in everybody:
        await person.leave()
    return Figures.of(readings, cpu, words)


def tell(name: str, rounds: list[Figures], base: float | None) -> None:
    def median(field: str) -> float:
        return statistics.median(getattr(figures, field) for figures in rounds)

    costs = sorted(figures.cpu_per_word for figures in rounds)
    ratio = f"{median('cpu_per_word') / base:.2f}" if base else ""
    print(
        f"| {name} | {median('cpu_per_word'):.0f} ({costs[0]:.0f} to {costs[-1]:.0f}) "
        f"| {ratio} | {median('late'):.0f} | {median('first'):.0f} "
        f"| {median('first_late'):.0f} | {sum(figures.wrong for figures in rounds)} |",
        flush=True,
    )


async def compare(found: list[Contestant], options: argparse.Namespace) -> None:
    rounds = defaultdict(list)
    spread = 0.0 if options.burst else 1.0
    plan = [(each, idle) for each in found for idle in sorted({0, options.idle})]
    for _ in range(options.rounds):
        for contestant, idle in plan:
            numbers = (options.streams, options.words, spread, idle)
            figures = await play(contestant, *numbers)
            name = contestant.name + (f", {idle:,} idle" if idle else "")
            rounds[name].append(figures)
            print(f"{os.getloadavg()[0]:.1f} {name}: {figures}", flush=True)
    print(f"\n{options.streams} replies at once of {options.words} words\n")
    print(
        "| | us of CPU per word | to Chainlit's | late p95 | first p50 | p95 | wrong |"
    )
    print("|---|---|---|---|---|---|---|")
    chainlit = [figures.cpu_per_word for figures in rounds.get("Chainlit", [])]
    base = statistics.median(chainlit) if chainlit else None
    for name, figures in rounds.items():
        tell(name, figures, base)


async def find_knee(contestant: Contestant, words: int) -> int:
    """The most streams of which 95 % of the words come in time, within 10 %."""
    low, high = 0, 40
    while high <= MOST_STREAMS:
        figures = await play(contestant, high, words, 1.0)
        if figures.late > LATE:
            break
        low, high = high, high * 2
    while high - low > max(4, low // 10):
        middle = (low + high) // 2
        figures = await play(contestant, middle, words, 1.0)
        low, high = (low, middle) if figures.late > LATE else (middle, high)
    return low


async def cost_of_a_turn(
    contestant: Contestant, words: int, turns: int
) -> tuple[float, float]:
    """Milliseconds of processor time, from Enter until nothing is left to do; and how
    many of them the process takes in the same time when it is asked nothing."""
    [seat] = await asyncio.to_thread(contestant.seats, 1)
    person = contestant.person(seat, words)
    await person.enter()
    # The first ones import, connect and compact.
    for _ in range(WARM_UP_TURNS):
        await person.ask()
    await asyncio.sleep(IDLE_SECONDS / 5)
    cpu = contestant.cpu_seconds()
    await asyncio.sleep(IDLE_SECONDS)
    idle = (contestant.cpu_seconds() - cpu) * 1000 / IDLE_SECONDS
    costs, started = [], monotonic()
    for _ in range(turns):
        cpu = contestant.cpu_seconds()
        await person.ask()
        await asyncio.sleep(1)
        costs.append((contestant.cpu_seconds() - cpu) * 1000)
    seconds = (monotonic() - started) / turns
    await person.leave()
    return statistics.fmean(costs), idle * seconds


async def main(options: argparse.Namespace) -> None:
    names = set(options.only.split(","))
    with (
        Upstream(options.words) as upstream,
        all_of_them(upstream.url, names, options.messages) as found,
    ):
        if not (options.knee or options.turns):
            await compare(found, options)
            return
        print("| | streams |" if options.knee else "| | ms of CPU per turn | idle |")
        print("|---|---|" if options.knee else "|---|---|---|")
        for contestant in found:
            if options.knee:
                figures = [await find_knee(contestant, options.words)]
            else:
                numbers = (options.words, options.turns)
                figures = [*await cost_of_a_turn(contestant, *numbers)]
            columns = " | ".join(f"{figure:.0f}" for figure in figures)
            print(f"| {contestant.name} | {columns} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--words", type=int, default=160)
    parser.add_argument("--messages", type=int, default=10)
    parser.add_argument("--only", default=",".join(NAMES))
    parser.add_argument("--idle", type=int, default=0)
    parser.add_argument("--burst", action="store_true")
    parser.add_argument("--knee", action="store_true")
    parser.add_argument("--turns", type=int, default=0)
    asyncio.run(main(parser.parse_args()))
