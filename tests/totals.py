"""Several runs of pytest in one line: how many tests, and whether each ran once.

Each run notes in the folder TEST_TOTALS what it ran (tests/plugin.py). At the end of
.ci/run, `python -m tests.totals FOLDER` looks whether a test ran twice, or never.
"""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

# What has to have run, by database.
EXPECTED = {"sqlite": "not weekly", "postgresql": "postgresql and not weekly"}
OUTCOMES = ("passed", "failed", "error", "skipped", "xfailed")
MOST_NAMED = 20


def note_run(folder: Path, database: str, began: float, stats: dict[str, Any]) -> None:
    ran = {report.nodeid for name in OUTCOMES for report in stats.get(name, [])}
    values = {
        "python": "{}.{}".format(*sys.version_info),
        "database": database,
        "began": began,
        "ran": sorted(ran),
        "skipped": len(stats.get("skipped", [])),
    }
    (folder / f"{database}-{os.getpid()}.json").write_text(json.dumps(values))


def collect(database: str) -> list[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q"]
    done = subprocess.run(
        [*command, "-m", EXPECTED[database]],
        env={**os.environ, "TEST_DATABASE": database},
        capture_output=True,
        text=True,
        check=True,
    )
    return [line for line in done.stdout.splitlines() if "::" in line]


def judge(runs: list[dict[str, Any]], expected: dict[str, list[str]]) -> list[str]:
    """Return the errors: tests that ran twice on one Python and database, or never."""
    python = "{}.{}".format(*sys.version_info)
    wrong = []
    for kind in sorted({(run["python"], run["database"]) for run in runs}):
        same = [run for run in runs if (run["python"], run["database"]) == kind]
        ran = Counter(name for run in same for name in run["ran"])
        wrong += [f"twice on {kind}: {name}" for name in ran if ran[name] > 1]
    for database, names in expected.items():
        same = [r for r in runs if (r["python"], r["database"]) == (python, database)]
        ran = {name for run in same for name in run["ran"]}
        wrong += [f"never on {database}: {name}" for name in names if name not in ran]
    return wrong


def describe(runs: list[dict[str, Any]]) -> str:
    counts: Counter[str] = Counter()
    for run in runs:
        counts[f"{run['database']}, Python {run['python']}"] += len(run["ran"])
    kinds = "; ".join(f"{count:,} on {kind}" for kind, count in counts.items())
    skipped = sum(run["skipped"] for run in runs)
    minutes = (time.time() - min(run["began"] for run in runs)) / 60
    total = f"{sum(counts.values()):,} tests ran in {minutes:.0f} minutes"
    return f"{total}: {kinds}. Skipped: {skipped}."


def main(folder: str) -> int:
    runs = [json.loads(path.read_text()) for path in sorted(Path(folder).iterdir())]
    with ThreadPoolExecutor() as pool:
        expected = dict(zip(EXPECTED, pool.map(collect, EXPECTED), strict=True))
    wrong = judge(runs, expected)
    lines = [*wrong[:MOST_NAMED], describe(runs)]
    if wrong:
        lines.append(f"{len(wrong)} tests ran twice or never.")
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
