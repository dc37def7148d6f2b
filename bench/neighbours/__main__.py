"""python -m bench.neighbours [ENTRANCE ...] [--write]: print the table, or document it.

An entrance is named by the beginning of its name: search, markdown, "shared pages".
"""

import argparse
import os
import re
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from bench.provider import running_provider
from tests.servers import Site

from .entrances import ENTRANCES, find
from .figures import Figures, write_table
from .measure import environment, measure

PAGE = Path(__file__).with_name("README.md")
PLACE = re.compile(r"(<!-- neighbours -->\n).*(\n<!-- end of neighbours -->)", re.S)


def collect_static(folder: Path) -> Path:
    """The files that pages need, once for all sites."""
    static = folder / "static"
    site = Site(environment(folder, "http://127.0.0.1:1/v1", static))
    site.manage("collectstatic", "--no-input", "--verbosity", "0")
    return static


def run(names: list[str]) -> list[Figures]:
    results = []
    with (
        tempfile.TemporaryDirectory() as folder,
        running_provider("bench.neighbours.provider") as provider_url,
    ):
        static = collect_static(Path(folder))
        for entrance in find(names):
            started = time.monotonic()
            results.append(measure(entrance, provider_url, static))
            took = time.monotonic() - started
            print(
                f"measured: {entrance.name}, {took:.0f} s", file=sys.stderr, flush=True
            )
    return results


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.neighbours")
    parser.add_argument(
        "entrances", nargs="*", help=f"of {', '.join(ENTRANCES)}; or all"
    )
    parser.add_argument("--write", action="store_true", help="update the docs")
    asked = parser.parse_args()
    if not list(find(asked.entrances)):
        parser.error(f"none of the entrances is called so: {', '.join(ENTRANCES)}")
    # For the database that is copied; the sites have it off.
    os.environ.setdefault("DEBUG", "true")
    before = os.getloadavg()[0]
    results = run(asked.entrances)
    measured = (
        f"Measured on {datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores at a load "
        f"average of {before:.1f} before:"
    )
    table = f"{measured}\n\n{write_table(results)}"
    print(table)
    if asked.write:
        text = PAGE.read_text()
        PAGE.write_text(PLACE.sub(lambda at: f"{at[1]}\n{table}\n{at[2]}", text))


if __name__ == "__main__":
    main()
