"""PostgreSQL clusters, and databases that are migrated already.

Migrating takes five seconds of a processor, and each process of a run needs a database.
So it happens once for each state of the code, and from then on files are copied.
"""

import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, Any

import django
import psycopg
from psycopg import sql

from .servers import ROOT, STOP_TIMEOUT, Server, Site

# The name of the migrated database in each cluster; nothing writes to it.
MIGRATED = "migrated"
CACHE = ROOT / ".pytest_cache" / "migrated"


def copy_sqlite(target: Path) -> str:
    """Make a migrated SQLite file; its DATABASE_URL."""
    with _made_once("sqlite", _fill_sqlite) as ready:
        shutil.copy(ready / "site.sqlite3", target)
    return f"sqlite:///{target}"


def forget_statistics(cursor: Any) -> None:
    """Let SQLite plan as without the statistics of the few rows of another test."""
    cursor.execute("SELECT name FROM sqlite_schema WHERE name LIKE 'sqlite_stat%'")
    for (name,) in cursor.fetchall():
        cursor.execute(f"DELETE FROM {name}")  # noqa: S608 - a name of SQLite's own
    cursor.execute("ANALYZE sqlite_schema")


@contextmanager
def _made_once(kind: str, fill: Callable[[Path], None]) -> Iterator[Path]:
    """A folder that `fill` has filled for the code as it is. Other processes wait."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{kind}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ready = CACHE / f"{kind}-{_digest_of_code()}"
        if not ready.exists():
            for outdated in CACHE.glob(f"{kind}-*"):
                shutil.rmtree(outdated)
            unfinished = CACHE / f"{kind}-unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            fill(unfinished)
            unfinished.rename(ready)
        yield ready


@cache
def _digest_of_code() -> str:
    """Models, migrations and whatever else a migration may call."""
    digest = hashlib.sha256(f"{django.__version__} {sys.version}".encode())
    for folder in ("chatsite", "memory"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(f"{path}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _fill_sqlite(folder: Path) -> None:
    _migrate(f"sqlite:///{folder / 'site.sqlite3'}")


def _fill_postgres(folder: Path) -> None:
    with _EmptyCluster() as cluster:
        cluster.execute("CREATE DATABASE {}", MIGRATED)
        _migrate(cluster.url(MIGRATED))
        cluster.terminate()
        shutil.copytree(cluster.data, folder, dirs_exist_ok=True)


def _migrate(url: str) -> None:
    Site({"DATABASE_URL": url, "DEBUG": "true"}).manage("migrate", "--verbosity", "0")


class Postgres(Server):
    """A PostgreSQL cluster of its own. As root it runs as the user postgres."""

    name = "postgres"
    # Fast shutdown: does not wait for clients to leave.
    stop_signal = signal.SIGINT

    def url(self, database: str = "windowpane") -> str:
        return f"postgres://postgres@127.0.0.1:{self.port}/{database}"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def command(self) -> list[str]:
        options = (
            f"port={self.port}",
            "listen_addresses=127.0.0.1",
            f"unix_socket_directories={self.folder}",
            "max_connections=200",
            # It only matters when the machine itself crashes.
            "fsync=off",
        )
        command = [self._binary("postgres"), "-D", str(self.data)]
        return command + [word for option in options for word in ("-c", option)]

    def is_ready(self) -> bool:
        try:
            psycopg.connect(self.url("postgres"), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def prepare(self) -> None:
        if not self.data.exists():
            self.make_data()

    def make_data(self) -> None:
        """The folder of data, with the database MIGRATED in it."""
        with _made_once("postgres", _fill_postgres) as ready:
            shutil.copytree(ready, self.data)
        if os.geteuid() == 0:
            for path in (self.folder, self.data, *self.data.rglob("*")):
                shutil.chown(path, "postgres", "postgres")

    def spawn(self, command: list[str], log: IO[bytes]) -> subprocess.Popen:
        is_root = os.geteuid() == 0
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            **({"user": "postgres", "group": "postgres"} if is_root else {}),
        )

    def crash(self) -> None:
        """Immediate shutdown: every connection is cut, recovery at the next start."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(STOP_TIMEOUT)

    @contextmanager
    def database(self, template: str = "template1") -> Iterator[str]:
        """The URL of a new database like the template, dropped afterwards."""
        name = f"w{uuid.uuid4().hex}"
        self.execute("CREATE DATABASE {} TEMPLATE {}", name, template)
        try:
            yield self.url(name)
        finally:
            self.execute("DROP DATABASE {} WITH (FORCE)", name)

    def execute(self, statement: str, *names: str) -> None:
        quoted = map(sql.Identifier, names)
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(*quoted))

    @staticmethod
    def _binary(name: str) -> str:
        # Debian keeps these out of PATH.
        found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
        path = str(found[-1]) if found else shutil.which(name)
        if not path:
            raise RuntimeError(
                f"{name} not found: install postgresql (make test does)."
            )
        return path


class _EmptyCluster(Postgres):
    """An empty cluster, as initdb makes it."""

    def make_data(self) -> None:
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres", "postgres")
        options = "--username=postgres --auth=trust --encoding=UTF8 --no-sync"
        command = [self._binary("initdb"), "--pgdata", str(self.data), *options.split()]
        with self.log_path.open("ab") as log:
            initdb = self.spawn(command, log)
        if initdb.wait():
            raise RuntimeError(f"initdb failed:\n{self.log()}")
