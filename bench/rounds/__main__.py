"""python -m bench.rounds [--write]: prints the table, or puts it into the docs."""

import argparse
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from itertools import product
from pathlib import Path

from bench.memory.run import PEERS, keep_quiet

from .contestants import CONTESTANTS
from .play import Turn, play
from .table import SIZES, WINDOWS, write_table

PAGE = Path(__file__).resolve().parents[2] / "memory" / "agents" / "README.md"
PLACE = re.compile(r"(<!-- rounds -->\n).*(\n<!-- end of rounds -->)", re.DOTALL)


def measure(case: tuple[int, str]) -> list[Turn]:
    window, name = case
    turns = [play(CONTESTANTS[name], window=window, chars=size) for size in SIZES]
    errors = {turn.error for turn in turns if turn.error}
    print("measured:", window, name, *errors, file=sys.stderr)
    return turns


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.rounds")
    parser.add_argument(
        "--write", action="store_true", help="update memory/agents/README.md"
    )
    write = parser.parse_args().write
    cases = list(product(WINDOWS, CONTESTANTS))
    with ProcessPoolExecutor(initializer=keep_quiet) as pool:
        results = dict(zip(cases, pool.map(measure, cases), strict=True))
    table = write_table(results, {peer: version(peer) for peer in PEERS})
    print(table)
    if write:
        text = PAGE.read_text()
        PAGE.write_text(PLACE.sub(lambda at: f"{at[1]}\n{table}\n{at[2]}", text))


if __name__ == "__main__":
    main()
