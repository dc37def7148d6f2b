"""python -m bench.memory [--write] [--only NAME] [--log FILE]: prints the tables.

Or puts them into docs/; the hash of each request that was sent goes into the log, one
line each."""

import argparse
import re
from pathlib import Path
from statistics import mean

from .chart import Panel, draw
from .figures import OURS, Results, list_requests
from .run import run
from .stress import LOSSY_TURNS
from .table import renew_rows, write_tables

DOCS = Path(__file__).resolve().parents[2] / "docs"
PLACE = re.compile(r"(<!-- bench -->\n).*(\n<!-- end of bench -->)", re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.memory")
    parser.add_argument(
        "--write",
        action="store_true",
        help="update README.md here, and docs/memory.svg",
    )
    parser.add_argument("--log", type=Path, help="where to list all requests by hash")
    parser.add_argument(
        "--only", default="", help="beginning of names: renew no other rows"
    )
    asked = parser.parse_args()
    results = run(asked.only)
    tables = write_tables(results)
    print(tables)
    if asked.log:
        asked.log.write_text("".join(list_requests(results)))
    if asked.write:
        page = Path(__file__).with_name("README.md")
        text = page.read_text()
        if asked.only:
            page.write_text(renew_rows(text, results))
            return
        page.write_text(PLACE.sub(lambda at: f"{at[1]}\n{tables}\n{at[2]}", text))
        (DOCS / "memory.svg").write_text(draw_results(results))


def draw_results(results: Results) -> str:
    first = next(iter(results.sets))
    reports = [each.reports[first] for each in results.figures]
    survivals = [each.survival for each in results.figures]
    panels = [
        Panel(
            "Cost of a turn",
            f"{first}, in fresh tokens",
            [report["effective_cost_per_turn"] for report in reports],
        ),
        Panel(
            "Turns blocked",
            f"{first}, of {reports[0]['turns']:,}",
            [report["blocked_turns"] for report in reports],
        ),
        Panel(
            "Short facts alive",
            f"of {LOSSY_TURNS}, lossy summariser",
            [mean(survival.alive) for survival in survivals],
        ),
        Panel(
            "Long facts alive",
            f"of {LOSSY_TURNS}, lossy summariser",
            [mean(survival.alive_long) for survival in survivals],
        ),
    ]
    title = "Cost, waiting and surviving facts of the memories compared"
    return draw([each.name for each in results.figures], panels, ours=OURS, title=title)


if __name__ == "__main__":
    main()
