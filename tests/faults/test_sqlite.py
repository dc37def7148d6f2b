"""The embedded form: one process, one file, and other writers at that file."""

import signal
import sqlite3
import threading
import time
from contextlib import closing, contextmanager

import pytest

from tests.patience import PATIENCE, wait_for

from . import full_disk
from .harness import story_text

pytestmark = [pytest.mark.fault, pytest.mark.database("sqlite")]

WRITES = 60
NOTHING = "UPDATE memory_conversation SET title = title WHERE id = 1"


def connect(topology):
    path = topology.url.removeprefix("sqlite:///")
    return closing(sqlite3.connect(path, timeout=20, isolation_level=None))


@contextmanager
def writer_lock(topology):
    with connect(topology) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield
        connection.execute("COMMIT")


def test_a_lock_of_three_seconds_is_waited_for(single, crowd):
    viewers = single.begin_stories(crowd, 3, words=50)
    late = crowd.open(single.sites, viewers[0].path)
    with writer_lock(single):
        late.send("Sent while the file is locked")
        time.sleep(3)
    single.settle_and_check([*viewers, late])
    assert single.truth.attempts(viewers) == [1] * 3
    assert (late.errors, late.connects) == ([], 1)


def test_four_writers_at_once_lose_nothing(single, crowd):
    viewers = single.begin_stories(crowd, 3, words=30)
    failures = []

    def write():
        try:
            with connect(single) as connection:
                for _ in range(WRITES):
                    connection.execute("BEGIN IMMEDIATE")
                    connection.execute(NOTHING)
                    connection.execute("COMMIT")
        except sqlite3.Error as error:
            failures.append(error)

    writers = [threading.Thread(target=write) for _ in range(4)]
    for writer in writers:
        writer.start()
    more = [viewer.send(story_text(3)) for viewer in viewers]
    for writer in writers:
        writer.join()
    single.settle_and_check(viewers)
    assert failures == []
    assert all(viewer.errors == [] for viewer in viewers)
    assert len(more) == 3


def test_a_full_disk_delays_replies_and_loses_none(single, crowd):
    with connect(single) as connection:
        # Pages that earlier tests left free would take in what is written here.
        connection.execute("VACUUM")
    viewers = single.begin_stories(crowd, 2, words=500, paces=(0.02, 0.005))
    full_disk.limit(single)
    try:
        # More than what the replies may have left free by now.
        for number in range(3):
            viewers[0].send(f"{number}" + "x" * 30_000)
        wait_for(lambda: viewers[0].errors, 30, "a refusal")
        log = single.sites[0].log
        wait_for(lambda: "checkpoint failed" in log(), 30, "a failed checkpoint")
    finally:
        full_disk.lift(single)
    assert viewers[0].errors[0]["code"] == "unavailable"
    single.settle_and_check(viewers)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_same_process_goes_on_when_it_is_back(single, crowd, number):
    viewers = single.begin_stories(crowd, 5)
    (site,) = single.sites
    site.send(number)
    site.process.wait(10 * PATIENCE)
    site.start()
    single.settle_and_check(viewers)
    assert single.truth.attempts(viewers) == [2] * 5
