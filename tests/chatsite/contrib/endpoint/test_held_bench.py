"""Faults, as the bench of held conversations counts them."""

import pytest

from bench.endpoint.held_state import EXPECTED, find_faults
from tests.fakes.held_threads import HeldState, count

READ = [{"role": "user", "content": "Hello"}]
TALKS = [["user0", f"{name}: one?"] for name, n in EXPECTED.items() for _ in range(n)]
REQUEST = {
    **{"is_proved": True, "is_held": True, "is_held_proved": True, "is_sum": True},
    "reported": count(READ) + count({}),
}


def find(talks=TALKS, **changed):
    held = HeldState(read=[("", READ, {})])
    return find_faults(talks, [{**REQUEST, **changed}], held)


def test_right_conversations_have_no_fault():
    assert find() == []


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"talks": TALKS[1:]}, "conversations"),
        ({"talks": [*TALKS, ["user0", "thread: one?"]]}, "conversations"),
        ({"talks": [["user1", *TALKS[0][1:]], *TALKS[1:]]}, "another user"),
        ({"is_proved": False}, "is_proved"),
        ({"is_sum": False}, "is_sum"),
        ({"is_held_proved": False}, "held"),
        ({"reported": 1}, "billed"),
    ],
)
def test_faults_are_named(given, fault):
    [found] = find(**given)
    assert fault in found
