"""A process is killed while a tool of a turn runs: another one, or the same one when it
is back, ends the turn, and no call is begun twice unless that does no harm.
"""

import json

import pytest

from tests.fakes import own_tools
from tests.fakes.calling import calling
from tests.patience import wait_for

from .harness import TAKEOVER

pytestmark = pytest.mark.fault

CALLS = "SELECT name, state FROM chat_toolcall WHERE conversation_id = {} ORDER BY id"


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
    path = topology.create()
    tools = f"{path}memory/tools/set/"
    topology.person.post(tools, tools=",".join(own_tools.NAMES))
    viewer = crowd.open(topology.sites, path)
    viewer.story = viewer.send("Do three things.")
    wanted = [["look_up", "done"], ["hang", "running"], ["hang_once", "running"]]
    wait_for(lambda: read(topology) == wanted and place.exists(), 20, "the calls")
    return viewer


def read(topology):
    newest = topology.truth.query("SELECT max(id) FROM memory_conversation")[0][0]
    return [list(row) for row in topology.truth.query(CALLS.format(newest))]


def check(topology, viewer, place):
    assert viewer.wait_end(viewer.story, TAKEOVER)["state"] == "done"
    topology.settle_and_check([viewer])
    assert read(topology) == [
        ["look_up", "done"],
        ["hang", "unknown"],
        ["hang_once", "done"],
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
def test_the_only_process_goes_on_when_it_is_back(single, crowd, tmp_path):
    viewer = begin(single, crowd, tmp_path / "keys")
    (site,) = single.sites
    site.kill()
    site.start()
    check(single, viewer, tmp_path / "keys")
