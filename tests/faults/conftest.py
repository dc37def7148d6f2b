"""The topologies that faults are tried on. Starting one takes seconds, so each serves
all tests that can use it; whatever a test has broken is repaired after it.
"""

import pytest

from . import full_disk
from .harness import Topology


@pytest.fixture(scope="session")
def _pair(tmp_path_factory):
    with Topology(tmp_path_factory.mktemp("pair")) as topology:
        yield topology


@pytest.fixture
def pair(_pair):
    """Two sites with PostgreSQL and Redis of their own."""
    yield _pair
    repair(_pair)


@pytest.fixture(scope="session")
def _single(tmp_path_factory):
    folder = tmp_path_factory.mktemp("single")
    env = full_disk.environment(folder)
    # The lock of a writer is held for three seconds, and a lease has to last longer.
    env |= {"TURN_LEASE_SECONDS": "6"}
    env |= {"MODEL_IDLE_TIMEOUT": "6", "MODEL_FIRST_TOKEN_TIMEOUT": "6"}
    env |= {"MODEL_TOTAL_TIMEOUT": "15"}
    with Topology(folder, count=1, servers=False, **env) as topology:
        yield topology


@pytest.fixture
def single(_single):
    """One site with SQLite and a layer in memory."""
    yield _single
    repair(_single)


def repair(topology):
    topology.show_logs()
    topology.start_all()
    # What was audited need not be audited after each test that follows; where something
    # still works on it, it is.
    topology.auditor.run("erase")


@pytest.fixture
def crowd(request):
    name = "pair" if "pair" in request.fixturenames else "single"
    with request.getfixturevalue(name).crowd() as crowd:
        yield crowd
