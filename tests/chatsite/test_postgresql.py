"""The pool of connections after the server has cut them."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from time import monotonic

import pytest
from django.db import connection

CUT = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
IDLE = 4


def ask(barrier=None):
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        if barrier:
            barrier.wait(10)
        value = cursor.fetchone()
    connection.close()
    return value


@pytest.mark.database("postgresql")
@pytest.mark.django_db(transaction=True)
def test_however_many_were_cut_the_next_query_is_answered_soon():
    barrier = Barrier(IDLE)
    with ThreadPoolExecutor(IDLE) as threads:
        list(threads.map(ask, [barrier] * IDLE))
    with connection.cursor() as cursor:
        cursor.execute(CUT)
        assert len(cursor.fetchall()) >= IDLE - 1
    connection.close()
    started = monotonic()
    assert ask() == ask() == (1,)
    assert monotonic() - started < 1.0
