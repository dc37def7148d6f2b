"""SQL that differs between SQLite and PostgreSQL."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Func, IntegerField
from django.db.models.sql.compiler import SQLCompiler

# The limits of a process that serves: a lock is waited for, a transaction is idle.
LIMITS = ("lock_timeout", "idle_in_transaction_session_timeout")
DAY_MS = 24 * 3600 * 1000


@contextmanager
def without_limits(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Let work on the whole database wait as long as it must, on this connection."""
    if connection.vendor == "postgresql":
        lift = [f"SET {name} = 0" for name in LIMITS]
        restore = [f"RESET {name}" for name in LIMITS]
    else:
        timeout = connection.settings_dict["OPTIONS"].get("timeout", 5)
        lift = [f"PRAGMA busy_timeout = {DAY_MS}"]
        restore = [f"PRAGMA busy_timeout = {int(timeout * 1000)}"]
    _execute(connection, lift)
    yield
    _execute(connection, restore)


def _execute(connection: BaseDatabaseWrapper, statements: list[str]) -> None:
    # A pragma that is not closed counts as a statement in progress: no VACUUM then.
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


class ListLength(Func):
    """How many entries the list under `key` of a JSON column has; NULL: none."""

    output_field = IntegerField()

    def __init__(self, expression: Any, *, key: str, **extra: Any) -> None:
        super().__init__(expression, key=key, **extra)

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any
    ) -> tuple[str, list[Any]]:
        template = "NULLIF(json_array_length(%(expressions)s, '$.%(key)s'), 0)"
        return super().as_sql(compiler, connection, template=template, **context)

    def as_postgresql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any
    ) -> tuple[str, list[Any]]:
        template = (
            "CASE WHEN jsonb_typeof(%(expressions)s -> '%(key)s') = 'array' THEN "
            "NULLIF(jsonb_array_length(%(expressions)s -> '%(key)s'), 0) END"
        )
        return super().as_sql(compiler, connection, template=template, **context)
