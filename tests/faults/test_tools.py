"""A process is killed while a tool of a turn runs: another one, or the same one when it
is back, ends the turn, and no call is begun twice unless that does no harm.
"""

import json

import pytest

from tests.fakes.calling import calling
from tests.patience import wait_for

from .harness import TAKEOVER

pytestmark = pytest.mark.fault


def begin(topology, crowd, place):
    """A viewer whose turn has one call done and two that hang: one that changes
    something, and one that only reads."""
    topology.upstream.script(
        calling(
            ("look_up", {"city": "Oslo"}),
            ("hang", {}),
            ("hang_once", {"path": str(place)}),
        )
    )
    path = topology.create_with_tools()
    viewer = crowd.open(topology.sites, path)
    viewer.story = viewer.send("Do three things.")
    wanted = [("look_up", "done"), ("hang", "running"), ("hang_once", "running")]
    have_begun = lambda: topology.truth.calls() == wanted and place.exists()  # noqa: E731
    wait_for(have_begun, 20, "the calls")
    return viewer


def check(topology, viewer, place):
    assert viewer.wait_end(viewer.story, TAKEOVER)["state"] == "done"
    topology.settle_and_check([viewer])
    assert topology.truth.calls() == [
        ("look_up", "done"),
        ("hang", "unknown"),
        ("hang_once", "done"),
    ]
    first, second = place.read_text().split()
    assert first == second  # the same key: it was the same call
    assert topology.upstream.violations == []
    sent = json.dumps(topology.upstream.calls[-1].messages)
    assert "not known whether the tool ran" in sent


@pytest.mark.database("postgresql")
def test_the_other_process_goes_on(pair, crowd, tmp_path):
    here, _ = pair.sites
    with pair.only(here):
        viewer = begin(pair, crowd, tmp_path / "keys")
    here.kill()
    check(pair, viewer, tmp_path / "keys")


@pytest.mark.database("sqlite")
def test_turn_goes_on_when_the_only_process_is_back(single, crowd, tmp_path):
    viewer = begin(single, crowd, tmp_path / "keys")
    (site,) = single.sites
    site.kill()
    site.start()
    check(single, viewer, tmp_path / "keys")
