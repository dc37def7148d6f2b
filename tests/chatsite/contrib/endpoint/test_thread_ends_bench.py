"""Faults, as the bench of threads that end counts them."""

import json
from types import SimpleNamespace

import pytest

from bench.endpoint.thread_ends import find_faults

ONE, TWO = "talk-1: turn 1?", "talk-1: turn 2?"
WHOLE = ["user0", ONE, f"Reply 1 to: {ONE}", TWO, f"Reply 3 to: {TWO}"]
REQUEST = {"is_proved": True, "is_held": True, "is_held_proved": True}


def find(conversations, **changed):
    talks = [SimpleNamespace(name="talk-1", turns=2)]
    return find_faults(json.dumps([conversations, [{**REQUEST, **changed}]]), talks)


def test_a_whole_conversation_and_one_that_a_branch_left_have_no_fault():
    assert find([WHOLE, WHOLE[:2]]) == []


@pytest.mark.parametrize(
    ("conversations", "changed", "faults"),
    [
        ([WHOLE[:3]], {}, ["not whole"]),
        ([[*WHOLE, "talk-2: turn 1?"]], {}, ["mixed", "not whole"]),
        ([[*WHOLE, TWO]], {}, ["not whole"]),
        ([WHOLE], {"is_proved": False}, ["no proof"]),
        ([WHOLE], {"is_held_proved": False}, ["held"]),
    ],
)
def test_faults_are_named(conversations, changed, faults):
    found = find(conversations, **changed)
    assert [each.partition(":")[0] for each in found] == faults
