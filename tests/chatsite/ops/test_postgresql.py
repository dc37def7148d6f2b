"""The pool of connections after the server has cut them."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from time import monotonic

import pytest
from django.db import connection

# Those of this test alone: other threads keep theirs from one test to the next.
CUT = "SELECT pg_terminate_backend(pid) FROM unnest(%s::integer[]) AS pid"
IDLE = 4


def ask(barrier=None):
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        if barrier:
            barrier.wait(10)
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
    started = monotonic()
    assert pids.isdisjoint({ask()} - {*mine})
    assert monotonic() - started < 1.0
