"""Fixtures that are made once for many tests."""

import pytest

from memory import transcript

from .chatsite.scenes import signed_in
from .remembered import remembered

made = []


@pytest.fixture
def log_in(alice):
    signed_in(alice)


@pytest.fixture
@remembered
def counted(log_in, alice):
    made.append(1)
    return transcript.create_conversation(alice)


@pytest.mark.parametrize("again", [False, True])
def test_a_log_in_makes_no_fixture_a_second_time(counted, alice, again):
    assert counted.owner == alice
    assert len(made) == 1
