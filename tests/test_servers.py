"""The servers that other tests stand on."""

import urllib.request

import psycopg
import pytest

from . import plugin
from .databases import Postgres
from .patience import wait_for
from .servers import Redis, find_chromium, free_port

pytestmark = pytest.mark.server


def test_postgres_keeps_committed_rows_over_a_crash():
    with Postgres() as server, server.database() as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE t (n int)")
            connection.execute("INSERT INTO t VALUES (7)")
        server.crash()
        server.restart()
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT n FROM t").fetchone() == (7,)


def test_redis_restarts_on_the_same_port():
    with Redis() as server:
        url = server.url
        server.kill()
        server.restart()
        assert server.url == url
        assert server.is_ready()


def test_site_is_served(start_site):
    site = start_site()
    with urllib.request.urlopen(f"{site.url}/healthz") as response:
        assert response.status == 200
    assert site.terminate() == 0
    site.restart()
    assert site.is_ready()


def test_error_names_why_a_server_did_not_start(start_site):
    with pytest.raises(RuntimeError, match="SECRET_KEY"):
        start_site(DEBUG="false", SECRET_KEY="")


def test_browser_is_found():
    assert find_chromium()


def test_wait_gives_up_after_its_time():
    with pytest.raises(AssertionError, match="for nothing"):
        wait_for(lambda: False, seconds=0.1, what="nothing")


def test_ports_are_free():
    assert free_port() != free_port()


@pytest.mark.django_db
def test_the_suite_runs_on_the_database_that_was_chosen():
    from django.db import connection

    assert connection.vendor == plugin.database
    if connection.vendor == "sqlite":
        assert "memory" not in connection.settings_dict["NAME"]
