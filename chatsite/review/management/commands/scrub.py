"""Rewrites the database's files, so that nothing is left in them of what was erased.

Deleting marks space as free; the bytes stay until something is written over them. Run
it after an erasure that has to reach that far, in a quiet hour: it locks the tables.
"""

from typing import Any

from django.core.management.base import BaseCommand
from django.db import connection

from memory.sql import without_limits

STAYS = (
    "Backups still hold what they held, and so do copies of the disk; on PostgreSQL "
    "also the write-ahead log, until its files are used again."
)
SQLITE = ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)")
INDEXES = "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%fts5%'"


class Command(BaseCommand):
    help = "Rewrites the database's files without what was erased from them."

    def handle(self, *args: Any, **options: Any) -> None:
        is_postgresql = connection.vendor == "postgresql"
        with without_limits(connection), connection.cursor() as cursor:
            for statement in _list_vacuums() if is_postgresql else _list_sqlite(cursor):
                cursor.execute(statement)
        self.stdout.write(f"{self.style.SUCCESS('Rewritten.')} {STAYS}")


def _list_sqlite(cursor: Any) -> list[str]:
    """Return the statements that merge the parts of text indexes and rewrite the file.

    Merging drops the words of rows that are gone.
    """
    names = [name for (name,) in cursor.execute(INDEXES).fetchall()]
    merges = [f"INSERT INTO {name} ({name}) VALUES ('optimize')" for name in names]  # noqa: S608
    return [*merges, *SQLITE]


def _list_vacuums() -> list[str]:
    """Return the statements that rewrite the tables.

    A plain VACUUM frees the space of dead rows without clearing it; FULL writes new
    files, with their indexes, and removes the old ones. The planner's statistics hold
    values of the columns, too: they are made again.
    """
    tables = connection.introspection.django_table_names(only_existing=True)
    quoted = ", ".join(map(connection.ops.quote_name, sorted(tables)))
    return [f"VACUUM (FULL, ANALYZE) {quoted}", "VACUUM FULL pg_catalog.pg_statistic"]
