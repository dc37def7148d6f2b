"""Two processes that share a database and nothing else: what holds over both."""

import signal
import sqlite3
import threading
import time
import urllib.request
import uuid
from contextlib import closing

import pytest
from websockets.exceptions import ConnectionClosed

from tests.clients import Person
from tests.patience import wait_for, within

pytestmark = pytest.mark.server

LIMITS = {"MESSAGES_PER_MINUTE": "4", "SOCKETS_PER_USER": "4"}


@pytest.fixture
def sites(start_site):
    first = start_site(**LIMITS)
    both = f"http://127.0.0.1:{first.port}"
    return first, start_site(**LIMITS, SITE_ORIGINS=both)


def send_many(chat, count, answers):
    """Ask for more than is allowed; what came of each."""
    for _ in range(count):
        chat.command(type="send", client_id=uuid.uuid4().hex, text="Hello")
        event = chat.event()
        while event["type"] not in ("ack", "error"):
            event = chat.event()
        answers.append(event.get("code", "ack"))


def close_code(chat):
    try:
        while True:
            chat.event(timeout=6)
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd else "no close frame"


def test_limits_and_sessions_hold_over_both(sites):
    first, second = sites
    alice, bob = Person(first, "alice"), Person(first, "bob")
    path, other = alice.create(), bob.create()
    with alice.chat(path) as here, alice.chat(path, second) as there:
        # What one process writes, the page at the other one reads. It asks first, as
        # what was there when the socket opened is not sent by itself.
        turn = here.send("Hello over there")["turn"]
        there.command(type="sync")
        assert there.until("end", turn=turn)[-1]["state"] == "done"

        answers = []
        chats = [
            threading.Thread(target=send_many, args=(chat, 15, answers))
            for chat in (here, there)
        ]
        for each in chats:
            each.start()
        for each in chats:
            each.join()
        taken = answers.count("ack")
        # Five minutes' worth at once, one of it used before; time gives some more.
        assert 19 <= taken <= 22
        assert set(answers) == {"ack", "rate_limited"}
        with bob.chat(other, second) as theirs:
            assert theirs.say("And me?")["state"] == "done"

        with alice.chat(path) as third, alice.chat(path, second) as fourth:
            for each in (third, fourth):
                each.command(type="sync")
                each.until("end")
            with alice.chat(path) as fifth:
                assert close_code(fifth) == 4429

        alice.post("/accounts/logout/")
        with within(5):
            assert [close_code(chat) for chat in (here, there)] == [4401, 4401]
    with bob.chat(other, second) as theirs:
        theirs.command(type="sync")
        theirs.until("end")
        second.send(signal.SIGTERM)
        assert close_code(theirs) == 1012
    assert "clean" in first.manage("audit")


def test_a_process_that_ends_tells_its_sockets_to_come_again(start_site):
    """Both a socket that has just opened and one that has been there for a while:
    daphne cancels the applications of old ones at once."""
    site = start_site()
    alice = Person(site, "alice")
    path = alice.create()
    with alice.chat(path) as old:
        time.sleep(2.5)
        with alice.chat(path) as young:
            site.send(signal.SIGTERM)
            assert [close_code(old), close_code(young)] == [1012, 1012]


@pytest.mark.database("sqlite")
def test_the_second_process_on_one_file_is_told(start_site):
    first = start_site()
    second = start_site()
    words = "Another process serves this SQLite file"
    wait_for(lambda: words in second.log(), what="the warning")
    assert words not in first.log()
    second.terminate()
    first.restart()
    assert words not in first.log()


@pytest.mark.database("sqlite")
def test_a_process_is_ready_while_another_one_writes(start_site):
    site = start_site()
    path = site.env["DATABASE_URL"].removeprefix("sqlite:///")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with urllib.request.urlopen(f"{site.url}/readyz", timeout=10) as answer:
            assert answer.read() == b"ready"
