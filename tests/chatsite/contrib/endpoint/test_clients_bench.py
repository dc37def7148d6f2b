"""The judgement of the bench of unchanged clients."""

import pytest

from bench.endpoint.clients.judging import judge

TOLD = "In the end: Kyoto-42 degrees and Nara-42 degrees"
ROWS = [["user", "How is the weather?"], ["assistant", ""], ["tool", "Kyoto-42"]]
ROWS += [["assistant", ""], ["tool", "Nara-42"], ["assistant", TOLD]]


def request(lineage="continued", rows=ROWS, **more):
    found = {"conversation": 1, "lineage": lineage, "is_proved": True, "texts": rows}
    return {**found, **more}


def test_a_conversation_that_has_all_is_right():
    title = request("single", [["user", "A title?"]], conversation=2)
    assert judge(TOLD, [request("single"), title, request(), request()]) == ""


@pytest.mark.parametrize(
    ("told", "requests", "fault"),
    [
        ("Kyoto-42", [request()], "did not finish"),
        (TOLD, [request(is_proved=False)], "another hash"),
        (TOLD, [request("single"), request("branch")], "went on as"),
        (TOLD, [request(rows=ROWS[:-1])], "has not all"),
        (TOLD, [request(rows=[*ROWS[:2], ROWS[-1]])], "has not all"),
        (TOLD, [], "has not all"),
    ],
)
def test_judge_reports_missing_requests(told, requests, fault):
    assert fault in judge(told, requests)
