"""A process that is asked to end answers what it was asked before."""

import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode

import psycopg
import pytest

from tests.clients import Person
from tests.patience import wait_for
from tests.servers import Site

pytestmark = [pytest.mark.server, pytest.mark.database("postgresql")]
FORM = "application/x-www-form-urlencoded"
WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"


def test_a_form_that_is_under_way_is_answered_and_no_other_taken(new_database):
    with new_database() as url, Site({"DATABASE_URL": url}) as site:
        ann = Person(site, "ann")
        token = re.search(r"X-CSRFToken[^\w]+(\w+)", ann.get("/"))[1]
        cookie = "; ".join(f"{each.name}={each.value}" for each in ann.cookies)
        headers = {"Cookie": cookie, "Content-Type": FORM, "Connection": "close"}

        def log_in():
            values = {"csrfmiddlewaretoken": token, "password": "wrong"}
            form = urlencode({**values, "username": "someone"})
            with closing(HTTPConnection("127.0.0.1", site.port, timeout=30)) as opened:
                opened.request("POST", "/accounts/login/", form, headers)
                return opened.getresponse().status

        with ThreadPoolExecutor() as pool, psycopg.connect(url) as other:
            other.execute("LOCK TABLE auth_user")
            answer = pool.submit(log_in)
            wait_for(lambda: other.execute(WAITING).fetchone()[0], what="the form")
            site.send(signal.SIGTERM)
            wait_for(lambda: not is_listening(site.port), what="the end of new ones")
            # Time enough to be cut off, and less than the site waits for a lock.
            time.sleep(0.7)
            other.commit()
            # Ann is logged in already, so she is led on.
            assert answer.result() == 302
        assert site.process.wait(15) == 0


def is_listening(port):
    """Ask the operating system; asking the site would be a request of its own."""
    rows = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return any(row.split()[1:4:2] == [f"0100007F:{port:04X}", "0A"] for row in rows)
