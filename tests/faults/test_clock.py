"""A process whose clock is an hour off: leases are by the clock of the database."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.patience import wait_for
from tests.servers import Site

from .harness import LEASE, TAKEOVER

pytestmark = [pytest.mark.fault, pytest.mark.database("postgresql")]


def faked(offset):
    """The environment of a process with another time of day."""
    (library,) = Path("/usr/lib").glob("*/faketime/libfaketime.so.1")
    return {
        "LD_PRELOAD": str(library),
        "FAKETIME": offset,
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        # Its correction of such waits shortens the one of the interpreter's lock.
        "FAKETIME_FORCE_MONOTONIC_FIX": "0",
    }


@pytest.fixture
def strange(pair):
    """Two more sites of the pair, one before and one after its time."""
    sites = [Site({**pair.env, **faked(offset)}) for offset in ("+1h", "-1h")]
    with ExitStack() as stack:
        for site in sites:
            site.env["SITE_ORIGINS"] += f",{site.url}"
            stack.callback(site.stop)
            site.launch()
        for site in sites:
            site.wait_until_ready()
        yield sites


def test_a_wrong_clock_neither_steals_nor_keeps_turns(pair, crowd, strange):
    words = int((LEASE + 0.5) / 0.1)
    viewers = pair.begin_stories(crowd, 2, words=words)
    viewers += pair.begin_stories(crowd, 4, words=words, sites=strange)
    pair.settle_and_check(viewers)
    assert pair.truth.attempts(viewers) == [1] * 6
    ahead, behind = strange
    behind.terminate()
    lost = pair.begin_at(ahead, crowd, 2)
    ahead.kill()
    wait_for(lambda: pair.truth.attempts(lost) == [2, 2], TAKEOVER, "the takeover")
    pair.settle_and_check(lost)
