"""Runs a benchmark on SQLite and on PostgreSQL, each with a database of its own."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.databases import Postgres

INNER = "BENCH_INNER"


def run(module: str, report: Callable[[], None]) -> None:
    """`python -m module [sqlite|postgresql ...]`: calls `report` for each database, in
    a process of its own, because settings are read once in a process."""
    if INNER in os.environ:
        prepare()
        report()
        return
    names = sys.argv[1:] or ["sqlite", "postgresql"]
    with tempfile.TemporaryDirectory() as folder:
        if "sqlite" in names:
            start(module, "SQLite", f"sqlite:///{Path(folder) / 'bench.sqlite3'}")
    if "postgresql" in names:
        with Postgres() as server:
            server.execute("CREATE DATABASE {}", "bench")
            start(module, "PostgreSQL", server.url("bench"))


def start(module: str, name: str, url: str) -> None:
    print(f"-- {name}", flush=True)
    env = {**os.environ, "DATABASE_URL": url, "DEBUG": "true", INNER: "1"}
    subprocess.run([sys.executable, "-m", module], env=env, check=True)


def prepare() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command

    # With DEBUG, Django keeps a log of all queries.
    settings.DEBUG = False
    settings.ALLOWED_HOSTS = ["testserver"]
    call_command("migrate", verbosity=0)


def measure(action: Callable[[], object], runs: int) -> list[float]:
    """Milliseconds of each run."""
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        action()
        times.append((time.perf_counter() - started) * 1000)
    return times
