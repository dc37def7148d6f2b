"""The command that restores a backup and audits it."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, connection
from django.db.backends.postgresql.client import DatabaseClient
from django.db.models import Max
from django.db.utils import ProgrammingError

from memory.models import Conversation, Message

STDIN = "-"
# As docs/deploy.md restores. What was granted to others is none of a backup's promises.
RESTORE = ("pg_restore", "--no-owner", "--no-acl", "--exit-on-error")


class Command(BaseCommand):
    help = (
        "Restores a backup (a file of pg_dump, a copy of an SQLite file) into a "
        "scratch database, which is dropped afterwards, and audits it; exits with 1 if "
        "it can't be restored or a promise is broken."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("backup", help="the file; - is the standard input")
        parser.add_argument(
            "--skip-hashes",
            action="store_true",
            help="do not rebuild the context of every reply (much faster)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        # What ends a program in the ordinary way has to drop the scratch database, too.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("It was ended early."))
        if options["backup"] != STDIN and not Path(options["backup"]).exists():
            raise CommandError(f"There is no file {options['backup']}.")
        restore = restore_dump if connection.vendor == "postgresql" else restore_copy
        try:
            with restore(options["backup"]) as name, connected_to(name):
                self._look(skip_hashes=options["skip_hashes"])
        except DatabaseError as error:
            raise CommandError(f"The backup can't be used: {error}") from error

    def _look(self, *, skip_hashes: bool) -> None:
        try:
            count = Conversation.objects.count()
        except DatabaseError as error:
            raise CommandError("The backup has no tables of this site.") from error
        # One of an older release is audited as it would be after a restore.
        call_command("migrate", verbosity=0)
        newest = Message.objects.aggregate(at=Max("created_at"))["at"]
        self.stdout.write(f"{count} conversations, newest message: {newest or 'none'}")
        call_command("audit", at_rest=True, skip_hashes=skip_hashes, stdout=self.stdout)


@contextmanager
def connected_to(name: str) -> Iterator[None]:
    """Connect this program to another database meanwhile."""
    settings = connection.settings_dict
    own = settings["NAME"]
    _disconnect()
    settings["NAME"] = name
    try:
        yield
    finally:
        _disconnect()
        settings["NAME"] = own


def _disconnect() -> None:
    connection.close()
    if connection.vendor == "postgresql":
        connection.close_pool()


@contextmanager
def restore_copy(backup: str) -> Iterator[str]:
    """Copy an SQLite file, since migrating changes it; yield the copy's name."""
    with tempfile.TemporaryDirectory() as folder:
        name = str(Path(folder, "restored.sqlite3"))
        if backup == STDIN:
            with Path(name).open("wb") as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy)
        else:
            shutil.copyfile(backup, name)
        try:
            with closing(sqlite3.connect(name)) as opened:
                (found,) = opened.execute("PRAGMA integrity_check(1)").fetchone()
        except sqlite3.DatabaseError as error:
            raise CommandError(f"This is no backup of SQLite: {error}.") from error
        if found != "ok":
            raise CommandError(f"The file is damaged: {found}")
        yield name


@contextmanager
def restore_dump(backup: str) -> Iterator[str]:
    """Restore a file of pg_dump into a database beside the site's; yield its name.

    The next run drops the database of a run that was killed.
    """
    name = f"{connection.settings_dict['NAME'][:40]}_verify_backup"
    quoted = connection.ops.quote_name(name)
    with connection._nodb_cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(hashtext(%s))", [name])
        if not cursor.fetchone()[0]:
            raise CommandError("Another verify_backup is running; wait until it ends.")
        drop = f"DROP DATABASE IF EXISTS {quoted} WITH (FORCE)"
        cursor.execute(drop)
        try:
            cursor.execute(f"CREATE DATABASE {quoted} TEMPLATE template0")
        except ProgrammingError as error:
            user = connection.settings_dict["USER"] or "windowpane"
            raise CommandError(
                f"The scratch database can't be made ({str(error).strip()}). Once, as "
                f"PostgreSQL's superuser: ALTER ROLE {user} CREATEDB;"
            ) from error
        try:
            _run_restore(name, backup)
            yield name
        finally:
            cursor.execute(drop)


def _run_restore(name: str, backup: str) -> None:
    settings = {**connection.settings_dict, "NAME": name}
    (_, *at, _), env = DatabaseClient.settings_to_cmd_args_env(settings, [])
    files = [] if backup == STDIN else [backup]
    command = [*RESTORE, *at, "--dbname", name, *files]
    try:
        done = subprocess.run(  # noqa: S603 - of settings and the operator's own file
            command,
            env={**os.environ, **(env or {})},
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise CommandError(
            "pg_restore is missing: apt-get install postgresql-client"
        ) from error
    if done.returncode:
        raise CommandError(f"The backup can't be restored.\n{done.stderr.strip()}")
