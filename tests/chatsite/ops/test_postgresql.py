"""The pool of connections after the server has cut them, the one that the thread of
turns and sockets keeps, and the times that are read.
"""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from threading import Barrier

import pytest
from channels.db import database_sync_to_async
from django.db import DataError, NotSupportedError, OperationalError, connection
from django.db.backends.postgresql.base import TIMESTAMPTZ_OID
from psycopg.pq import Format

from chatsite.database import keep_connection
from chatsite.postgresql.base import UtcLoader, is_cut
from memory.database import is_away
from tests.patience import PATIENCE, wait_for, within

# Those of this test alone: other threads keep theirs from one test to the next.
CUT = "SELECT pg_terminate_backend(pid) FROM unnest(%s::integer[]) AS pid"
IDLE = 4


def ask(barrier=None):
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        if barrier:
            barrier.wait(10 * PATIENCE)
        (pid,) = cursor.fetchone()
    connection.close()
    return pid


@pytest.mark.database("postgresql")
@pytest.mark.django_db(transaction=True)
def test_however_many_were_cut_the_next_query_is_answered_soon():
    barrier = Barrier(IDLE)
    with ThreadPoolExecutor(IDLE) as threads:
        pids = {*threads.map(ask, [barrier] * IDLE)}
    assert len(pids) == IDLE
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        mine = cursor.fetchone()
        cursor.execute(CUT, [[*pids - {*mine}]])
        assert len(cursor.fetchall()) >= IDLE - 1
    connection.close()
    with within(1):
        assert pids.isdisjoint({ask()} - {*mine})


@database_sync_to_async
def backend():
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return cursor.fetchone()[0]


@pytest.mark.database("postgresql")
@pytest.mark.django_db(transaction=True)
async def test_a_kept_connection_stays_until_it_is_cut():
    await database_sync_to_async(keep_connection)()
    try:
        first = await backend()
        others = ThreadPoolExecutor(1)
        assert others.submit(ask).result() != first
        assert await backend() == first
        others.submit(cut, first).result()
        await database_sync_to_async(wait_for_last_message)()
        assert await backend() != first
    finally:
        await database_sync_to_async(give_back)()


def cut(pid):
    with connection.cursor() as cursor:
        cursor.execute(CUT, [[pid]])
    connection.close()


def wait_for_last_message():
    """PostgreSQL ends a backend in its own time, and its list of backends says nothing
    of what has reached this end of the connection: the site looks at that alone. It is
    closed already if the message came before this call."""
    if line := connection.connection:
        wait_for(lambda: is_cut(line), 10, "the end of the connection")


def give_back():
    connection.is_kept = False
    connection.close()


@pytest.mark.database("postgresql")
@pytest.mark.django_db(transaction=True)
def test_statement_is_planned_again_after_its_column_has_changed():
    """A release that is being replaced runs beside the migrations of the next one."""

    def read():
        with connection.cursor() as cursor:
            cursor.execute("SELECT number FROM changing")
            return cursor.fetchone()[0]

    def run(sql):
        with connection.cursor() as cursor:
            cursor.execute(sql)
        connection.close()

    run("CREATE TABLE changing AS SELECT 1 AS number")
    try:
        assert {read() for _ in range(10)} == {1}
        with ThreadPoolExecutor(1) as other:
            changed = "ALTER TABLE changing ALTER number TYPE text"
            other.submit(run, changed).result()
        with pytest.raises(OperationalError) as failure:
            read()
        assert is_away(failure.value)
        assert read() == "1"
    finally:
        run("DROP TABLE changing")


@pytest.mark.database("postgresql")
@pytest.mark.django_db(transaction=True)
def test_unsupported_statement_is_not_taken_for_a_changed_database():
    with connection.cursor() as cursor, pytest.raises(NotSupportedError) as failure:
        cursor.execute("SELECT count(*) FROM django_session FOR UPDATE")
    assert not is_away(failure.value)


@pytest.mark.database("postgresql")
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-12-01 10:16:49.5+00", datetime(2026, 12, 1, 10, 16, 49, 500_000, UTC)),
        ("2026-12-01 10:16:49+00", datetime(2026, 12, 1, 10, 16, 49, 0, UTC)),
        ("2026-12-01 10:16:49.000007+05:45", datetime(2026, 12, 1, 4, 31, 49, 7, UTC)),
        ("0987-01-02 03:04:05+00", datetime(987, 1, 2, 3, 4, 5, 0, UTC)),
        (None, None),
    ],
)
def test_times_are_read_as_they_are(text, expected):
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::timestamptz", [text])
        assert cursor.fetchone() == (expected,)
        loader = cursor.connection.adapters.get_loader(TIMESTAMPTZ_OID, Format.TEXT)
        assert loader is UtcLoader
        cursor.execute("SET LOCAL TIME ZONE 'Asia/Kathmandu'")
        cursor.execute("SELECT %s::timestamptz", [text])
        assert cursor.fetchone() == (expected,)


@pytest.mark.database("postgresql")
@pytest.mark.django_db
def test_time_that_python_does_not_have_is_an_error():
    with connection.cursor() as cursor:
        cursor.execute("SELECT 'infinity'::timestamptz")
        with pytest.raises(DataError, match="timestamp too large"):
            cursor.fetchone()
