"""Django's PostgreSQL backend, with a pool that gets over a restart at once.

And it reads times in a tenth of the time.
"""

import select
from datetime import UTC, datetime
from typing import Any

from django.db.backends.postgresql import base
from django.db.backends.postgresql.psycopg_any import BaseTzLoader
from psycopg import Connection, Error
from psycopg_pool import ConnectionPool


class DatabaseWrapper(base.DatabaseWrapper):
    # Whether this thread keeps its connection between two calls, instead of returning
    # it to the pool after each (chatsite/database.py).
    is_kept = False

    def get_connection_params(self) -> dict[str, Any]:
        params = super().get_connection_params()
        if self.timezone == UTC:
            params["context"].register_loader("timestamptz", UtcLoader)
        return params

    def close_if_unusable_or_obsolete(self) -> None:
        if self.is_kept:
            self.close_at = None
        super().close_if_unusable_or_obsolete()
        if self.is_kept and self.connection is not None:
            if is_cut(self.connection):
                self.close()
            else:
                self.health_check_done = True

    @property
    def pool(self) -> ConnectionPool | None:
        pool = super().pool
        if pool:
            # Django has no setting for it.
            pool._check = check_connection
        return pool


class UtcLoader(BaseTzLoader):
    """Reads a time without psycopg's regular expression, also with its C extension."""

    timezone = UTC

    def load(self, data: bytes | memoryview) -> datetime:
        try:
            return datetime.fromisoformat(str(data, "ascii")).astimezone(UTC)
        except ValueError:  # such as infinity, and years before Christ
            return super().load(data)


def is_cut(connection: Connection) -> bool:
    """Return True if an idle connection has something to read.

    That is its end, or the error that the server sends before it. Looking costs no
    round trip.
    """
    poll = select.poll()
    try:
        poll.register(connection.fileno(), select.POLLIN)
        return bool(poll.poll(0))
    except (Error, OSError):
        return True


def check_connection(connection: Connection) -> None:
    """Raise an error when the connection is dead, and empty its pool.

    What cut one has cut all that lay idle, and the pool would try them one by one, with
    pauses of 1, 2, 4 ... seconds, longer than a turn's lease.
    """
    try:
        ConnectionPool.check_connection(connection)
    except Error:
        connection._pool.drain()
        raise
