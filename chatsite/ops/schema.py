"""The check that the database has this release's tables.

On an older database a process would fail at every request and every second, so it does
not start.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from pkgutil import iter_modules

from django.apps import apps
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from memory.database import TROUBLE


def find_missing_migrations() -> list[str]:
    """Return migrations of this release that the database lacks.

    They are known by the names of their files: to read them all would make a start ten
    times as long.
    """
    applied = MigrationRecorder(connection).applied_migrations()
    return [
        f"{app}.{name}" for app, name in _list_files() if (app, name) not in applied
    ]


def _list_files() -> Iterator[tuple[str, str]]:
    for app in apps.get_app_configs():
        for module in iter_modules([str(Path(app.path) / "migrations")]):
            if module.name[0] not in "_~":
                yield app.label, module.name


def refuse_older_schema() -> None:
    """End this process where migrations are missing.

    A database that does not answer is waited for as always, and a newer one serves
    older releases.
    """
    try:
        missing = find_missing_migrations()
    except TROUBLE:
        return
    finally:
        connection.close()
    if missing:
        others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        sys.exit(
            f"The database is older than this release: it lacks {missing[0]}{others}. "
            "Run manage.py migrate, then start again."
        )
