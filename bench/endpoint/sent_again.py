"""python -m bench.endpoint.sent_again [--api chat] [--size 2000] [--calls without]

The cost of a request whose client resends its whole history: processor time of the
site's process, and the rows and bytes that it adds to the database. One client of a
separate site sends a history of this size, and then ONE_MORE times one more exchange.
"""

import argparse
import asyncio
import json
import sqlite3
from contextlib import closing
from itertools import product
from typing import Any

import aiohttp

from bench.streaming.contestants import cpu_of_tree
from tests.fakes.wires import Call, Reply, write_whole

from .bounded import PATHS
from .long_talk import WITH_TOOL, LongTalk
from .place import Place, make_place
from .provider import Provider
from .strict import WORDS

SIZES, ONE_MORE = (200, 1_000, 2_000), 20
# Words of a question and of a reply: some 300 characters.
ASKED, SAID = 45, 50
CALLS = {"without": False, "with": True}


def make_talk(wire: str, size: int, *, has_calls: bool) -> LongTalk:
    """Make a history of this many messages, which was never sent."""
    talk = LongTalk(wire, 0, ASKED, seed=size)
    turn = 0
    while len(talk.said) < size:
        wants_tool = has_calls and turn % WITH_TOOL == WITH_TOOL - 1
        talk.ask(turn, wants_tool=wants_tool)
        if wants_tool:
            word = json.dumps({"word": talk.random.choice(WORDS)})
            _answer(talk, Reply("", [Call("look_up", word)]))
            talk.said.append(talk.find_result())
        _answer(talk, Reply(" ".join(talk.random.choices(WORDS, k=SAID))))
        turn += 1
    return talk


def _answer(talk: LongTalk, reply: Reply) -> None:
    talk.take(json.dumps(write_whole(talk.wire, "m", reply)).encode())


async def send(session: Any, place: Place, talk: LongTalk) -> str:
    """Send the next exchange; return the lineage that the site reports."""
    talk.ask(len(talk.said))
    headers = {"authorization": f"Bearer {place.keys[0]}"}
    address = place.site.url + PATHS[talk.wire]
    raw = talk.write()
    talk.bodies.clear()
    async with session.post(address, data=raw, headers=headers) as answer:
        answer.raise_for_status()
        talk.take(await answer.read())
        return answer.headers["x-windowpane-lineage"]


def weigh(place: Place) -> tuple[int, int]:
    """Return the number of all rows of the database, and the bytes of their values."""
    path = place.site.env["DATABASE_URL"].removeprefix("sqlite:///")
    rows = size = 0
    with closing(sqlite3.connect(path)) as database:
        tables = "SELECT name FROM sqlite_schema WHERE type='table' AND sql NOT NULL"
        for (table,) in database.execute(tables).fetchall():
            names = database.execute("SELECT name FROM pragma_table_info(?)", [table])
            each = "+".join(
                f'coalesce(length(CAST("{name}" AS BLOB)), 0)' for (name,) in names
            )
            query = f'SELECT count(*), coalesce(sum({each}), 0) FROM "{table}"'  # noqa: S608 - names of tables
            count, total = database.execute(query).fetchone()
            rows, size = rows + count, size + total
    return rows, size


async def measure(
    session: Any, place: Place, talk: LongTalk
) -> tuple[float, float, float]:
    """Return the milliseconds, rows and bytes of one request, a mean of ONE_MORE."""
    await send(session, place, talk)
    rows, size = weigh(place)
    before = cpu_of_tree(place.site.process.pid)
    for _ in range(ONE_MORE):
        lineage = await send(session, place, talk)
        if lineage != "continued":
            raise SystemExit(f"A request was taken for {lineage!r}.")
    # Work after an answer counts, too.
    await asyncio.sleep(0.5)
    seconds = cpu_of_tree(place.site.process.pid) - before
    more_rows, more_size = weigh(place)
    return (
        seconds / ONE_MORE * 1_000,
        (more_rows - rows) / ONE_MORE,
        (more_size - size) / ONE_MORE,
    )


async def main(api: list[str], size: list[int], calls: list[str]) -> None:
    async with Provider(words=SAID).running() as provider:
        for name, how, count in product(api, calls, size):
            talk = make_talk(name, count, has_calls=CALLS[how])
            body = len(talk.write())
            with make_place(provider.url) as place:
                async with aiohttp.ClientSession() as session:
                    cost, rows, added = await measure(session, place, talk)
            print(
                f"{name}, {how} calls, {count} messages ({body / 1_000:.0f} kB): "
                f"{cost:.1f} ms, {rows:.1f} rows, {added:.0f} bytes",
                flush=True,
            )


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--api", nargs="+", choices=PATHS, default=[*PATHS])
    # The name of the option in earlier releases.
    old = {"dest": "api", "default": argparse.SUPPRESS, "help": argparse.SUPPRESS}
    parser.add_argument("--wire", nargs="+", choices=PATHS, **old)
    parser.add_argument("--size", nargs="+", type=int, default=SIZES)
    parser.add_argument("--calls", nargs="+", choices=CALLS, default=[*CALLS])
    return parser.parse_args()


if __name__ == "__main__":
    asyncio.run(main(**vars(read_options())))
