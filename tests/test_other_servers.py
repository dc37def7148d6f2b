"""What the bench of other people's servers judges by. The servers are not started."""

import pytest

from bench.other_servers import __main__ as command
from bench.other_servers import gateway, visit

from .servers import ROOT

USER = {"role": "user", "content": "Hello"}
ASKED = {"role": "assistant", "content": None, "tool_calls": [{"id": "a"}]}
RESULT = {"role": "tool", "content": "5", "tool_call_id": "a"}
TOOLS = [{"type": "function", "function": {"name": visit.SEARCH}}]
LAST = {
    "messages": [USER, ASKED, RESULT],
    "sha256": visit.hash_of([USER, ASKED, RESULT]),
    "refs": {"summaries": [3]},
}


@pytest.mark.parametrize("name", command.RUNS)
def test_the_page_names_the_pinned_version(name):
    page = (ROOT / "docs" / "testing.md").read_text()
    rows = [
        line for line in page.splitlines() if f"| {command.read_pin(name)} |" in line
    ]
    assert rows


def test_a_good_last_request_has_no_fault():
    outcome = visit.Outcome(last=LAST)
    visit.check_last(outcome)
    assert outcome.faults == []


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"refs": {"summaries": []}}, "no summary was in the last request"),
        ({"sha256": "0"}, "the hash is another one"),
        (
            {"refs": {"summaries": [3], "tools_refused": [visit.SEARCH]}},
            "the server was taken for one that has no tools",
        ),
        (
            {"messages": [USER], "sha256": visit.hash_of([USER])},
            "the last request ends with no result",
        ),
    ],
)
def test_what_is_wrong_with_the_last_request_is_told(changes, told):
    outcome = visit.Outcome(last=LAST | changes)
    visit.check_last(outcome)
    assert outcome.faults == [told]


def test_the_row_counts_what_is_done():
    calls = [{"state": "done"}, {"state": "failed"}]
    outcome = visit.Outcome(["done", "error"], calls, summaries=2, found=1)
    assert outcome.cells == ["1 of 2", "1 of 2", "1", "2", "not clean"]


def test_the_provider_calls_first_and_answers_then():
    asked = {"messages": [USER], "tools": TOOLS}
    with gateway.Provider() as provider:
        assert callable(provider.next_mode(asked))
        assert provider.next_mode({**asked, "messages": [USER, ASKED, RESULT]}) == "ok"
        # A summary is asked for without tools.
        assert provider.next_mode({"messages": [USER]}) == "ok"


def test_only_what_says_nothing_may_be_left_out_by_the_proxy():
    assert gateway.as_passed_on([USER, ASKED]) == [
        USER,
        {"role": "assistant", "tool_calls": [{"id": "a"}]},
    ]
