"""Runs a benchmark on SQLite and on PostgreSQL, each with a database of its own."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.servers import Postgres

NAMES = ["sqlite", "postgresql"]
INNER = "BENCH_INNER"


def is_inner() -> bool:
    """Whether this process was started by run_each, with a database to fill."""
    return INNER in os.environ


def run_each(module: str, names: list[str]) -> None:
    """`python -m module` for each database: settings are read once in a process."""
    names = names or NAMES
    with tempfile.TemporaryDirectory() as folder:
        if "sqlite" in names:
            _run(module, "SQLite", f"sqlite:///{Path(folder) / 'bench.sqlite3'}")
    if "postgresql" in names:
        with Postgres() as server:
            server.execute("CREATE DATABASE {}", "bench")
            _run(module, "PostgreSQL", server.url("bench"))


def _run(module: str, name: str, url: str) -> None:
    print(f"-- {name}", flush=True)
    env = {**os.environ, "DATABASE_URL": url, "DEBUG": "true", INNER: "1"}
    subprocess.run([sys.executable, "-m", module], env=env, check=True)
