"""Database calls from async code, repeated while the database is away."""

import asyncio
import logging
from collections.abc import Callable
from time import monotonic
from typing import Any, TypeVar

from channels.db import database_sync_to_async
from django.db import Error, InterfaceError, InternalError, OperationalError

logger = logging.getLogger(__name__)

T = TypeVar("T")
# After a restart, a lost connection, a lock timeout, a full disk or a failover, the
# same statement may succeed a moment later. Other errors are bugs.
TRANSIENT_DB_ERRORS = (OperationalError, InterfaceError, InternalError)
# Some OperationalErrors are permanent, as for a statement that is too large or a
# missing table: SQLite's name for them, and PostgreSQL's class of error codes.
FAULTY_STATEMENT = "SQLITE_ERROR"
LIMIT_EXCEEDED = "54"
# All errors of a driver, for code that must not fail.
TROUBLE = Error
FIRST_PAUSE = 0.1
MAX_PAUSE = 1.0


async def retry(work: Callable[..., T], *args: Any, until: float) -> T:
    """Run work(*args) in the database thread, again while the database is away.

    After time.monotonic() has reached `until`, its error is raised. The work has to be
    safe to repeat: its answer may be lost after it was committed.
    """
    pause = FIRST_PAUSE
    while True:
        try:
            return await database_sync_to_async(work)(*args)
        except TRANSIENT_DB_ERRORS as error:
            if monotonic() + pause >= until or not is_away(error):
                raise
            logger.warning("database away at %s: %s", work.__name__, name_of(error))
        await asyncio.sleep(pause)
        pause = min(pause * 2, MAX_PAUSE)


def is_away(error: BaseException | None) -> bool:
    """Return whether the database did not answer, rather than refused."""
    cause = getattr(error, "__cause__", None)
    faulty = getattr(cause, "sqlite_errorname", "") == FAULTY_STATEMENT
    exceeded = (getattr(cause, "sqlstate", None) or "").startswith(LIMIT_EXCEEDED)
    return isinstance(error, TRANSIENT_DB_ERRORS) and not faulty and not exceeded


def name_of(error: BaseException) -> str:
    """Return the class of the driver's error; its text can hold a query's values."""
    return type(error.__cause__ or error).__name__
