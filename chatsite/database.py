"""Database helpers besides rows: refused values and read-only databases.

memory/database.py knows when a database is away.
"""

import fcntl
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import SuspiciousOperation, SynchronousOnlyOperation
from django.db import DataError, NotSupportedError, OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper

from memory.database import is_away, name_of

logger = logging.getLogger(__name__)

# PostgreSQL's read_only_sql_transaction.
READ_ONLY_STATE = "25006"
CLOCK_SQL = {
    "postgresql": "SELECT extract(epoch FROM clock_timestamp())",
    "sqlite": "SELECT (julianday('now') - 2440587.5) * 86400.0",
}


class RefusedInputError(SuspiciousOperation, DataError):
    """A value from outside that the database does not take; answered with 400.

    Examples are NUL, half of a surrogate pair and an infinite number.
    """


def watch_values(connection: BaseDatabaseWrapper, **kwargs: Any) -> None:
    """Make each new connection say in the same way what it refuses."""
    if _explain_refusals not in connection.execute_wrappers:
        connection.execute_wrappers.append(_explain_refusals)


def keep_connection() -> None:
    """Keep the connection of this thread between two calls; replace it when it is dead.

    With SQLite, all threads keep theirs.
    """
    connection.is_kept = True


def close_connection(**kwargs: Any) -> None:
    """Close the connection of a request's thread, which ends with the request.

    The thread of the event loop has no connection.
    """
    with suppress(SynchronousOnlyOperation):
        if not connection.in_atomic_block:
            connection.close()


def _explain_refusals(
    execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
) -> Any:
    # SQLite alone takes NUL, and PostgreSQL could not take over such a row.
    if context["connection"].vendor == "sqlite" and _has_nul(params, many):
        raise RefusedInputError("A value has a NUL character.")
    try:
        return execute(sql, params, many, context)
    except (DataError, OverflowError, UnicodeEncodeError) as error:
        raise RefusedInputError(
            f"The database refused a value: {name_of(error)}"
        ) from error
    except NotSupportedError as error:
        if not _has_stale_plan(error):
            raise
        # The driver forgets its plans with a transaction that is rolled back.
        if not context["connection"].in_atomic_block:
            context["connection"].connection.execute("DEALLOCATE ALL")
        raise OperationalError("The database has changed.") from error


def _has_stale_plan(error: NotSupportedError) -> bool:
    """Return whether a migration has changed a column that PostgreSQL had planned for.

    The message is translated and its code is that of all unsupported features; the
    name of the server's routine is what pgJDBC looks at, too.
    """
    diagnosis = getattr(error.__cause__, "diag", None)
    return getattr(diagnosis, "source_function", None) == "RevalidateCachedQuery"


def _has_nul(params: Any, many: bool) -> bool:
    if many:
        return False
    values = params.values() if isinstance(params, dict) else params or ()
    return any(isinstance(value, str) and "\0" in value for value in values)


def log_trouble(error: Exception) -> None:
    """Log an error of TROUBLE: a database that is away is no defect."""
    if is_away(error):
        logger.warning("database away: %s", name_of(error))
    else:
        logger.error("database failed", exc_info=error)


def check_writable() -> None:
    """Raise the database's error if it cannot be written to.

    Standbys and disks that the system has mounted read-only are such databases.
    """
    is_sqlite = connection.vendor == "sqlite"
    with connection.cursor() as cursor:
        try:
            if is_sqlite:
                # If it is locked by a writer, it can be written to.
                cursor.execute("PRAGMA busy_timeout = 0")
            # A write for the database, though there is no such row.
            cursor.execute("DELETE FROM django_session WHERE 1 = 0")
        except OperationalError as error:
            if name_of_sqlite(error) != "SQLITE_BUSY":
                raise
        finally:
            if is_sqlite:
                seconds = connection.settings_dict["OPTIONS"].get("timeout", 5)
                cursor.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")


def is_read_only(error: BaseException) -> bool:
    is_postgresql = getattr(error.__cause__, "sqlstate", "") == READ_ONLY_STATE
    return is_postgresql or name_of_sqlite(error).startswith("SQLITE_READONLY")


def name_of_sqlite(error: BaseException) -> str:
    return getattr(error.__cause__, "sqlite_errorname", "")


def claim_file() -> bool:
    """Return if this process is the first to serve its SQLite file.

    True for any other database. The claim ends with the process.
    """
    path = Path(str(connection.settings_dict["NAME"]))
    if connection.vendor != "sqlite" or not path.exists():
        return True
    # Beside the database: closing that file itself would drop SQLite's own locks.
    claim = path.with_name(f"{path.name}-serving")
    try:
        descriptor = os.open(claim, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return False
    except OSError:
        logger.warning("%s cannot be created; other processes are not noticed.", claim)
    return True


def lock_user(pk: int) -> None:
    """Lock a user's rows: no other transaction may count or replace them.

    Rows that only refer to the user need not wait.
    """
    people = get_user_model().objects.select_for_update(no_key=True)
    people.filter(pk=pk).values_list("pk").first()


def read_clock() -> datetime:
    """Return the time of the database's clock, which all processes share."""
    with connection.cursor() as cursor:
        cursor.execute(CLOCK_SQL[connection.vendor])
        return datetime.fromtimestamp(float(cursor.fetchone()[0]), UTC)
