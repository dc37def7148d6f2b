"""Django's PostgreSQL backend, with a pool that gets over a restart at once."""

from django.db.backends.postgresql import base
from psycopg import Connection, Error
from psycopg_pool import ConnectionPool


class DatabaseWrapper(base.DatabaseWrapper):
    @property
    def pool(self) -> ConnectionPool | None:
        pool = super().pool
        if pool:
            # Django has no setting for it.
            pool._check = check
        return pool


def check(connection: Connection) -> None:
    """Raises an error when the connection is dead, and empties its pool: what cut one
    has cut all that lay idle, and the pool would try them one by one, with pauses of
    1, 2, 4 ... seconds, longer than a turn's lease."""
    try:
        ConnectionPool.check_connection(connection)
    except Error:
        connection._pool.drain()
        raise
