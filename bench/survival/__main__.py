"""python -m bench.survival [--write]: prints the table, or puts it into README.md."""

import argparse
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from bench.memory.contestants import CONTESTANTS
from bench.memory.figures import OURS
from bench.memory.run import PEERS, keep_quiet

from .play import Survival, play
from .table import write_table

PAGE = Path(__file__).resolve().parents[2] / "README.md"
PLACE = re.compile(r"(<!-- survival -->\n).*(\n<!-- end of survival -->)", re.DOTALL)
PLAYED = (
    f"{OURS}, layered, adaptive + recall + rules kept",
    "LangGraph tutorial, fixed 4000",
    "LangMem, fixed 4000/4000/256",
    "LangChain, fixed 4000, no trim",
    "Deep Agents, fixed 4000, no trim",
    "LangMem, 2000/4000/256",
    "LangChain, documented 4000 tokens, keep 20",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.survival")
    parser.add_argument("--write", action="store_true", help="update README.md")
    asked = parser.parse_args()
    results = []
    with ProcessPoolExecutor(initializer=keep_quiet) as pool:
        for each in pool.map(play_through, PLAYED):
            print("played:", each.name, each.compactions, file=sys.stderr)
            results.append(each)
    day = datetime.now(UTC)
    played = ", ".join(f"{peer} {version(peer)}" for peer in PEERS)
    lead = f"Measured on {day.day} {day:%B %Y} with {played}."
    table = write_table(results, lead)
    print(table)
    if asked.write:
        found = PLACE.sub(lambda at: f"{at[1]}\n{table}\n{at[2]}", PAGE.read_text())
        PAGE.write_text(found)


def play_through(name: str) -> Survival:
    return play(name, CONTESTANTS[name])


if __name__ == "__main__":
    main()
