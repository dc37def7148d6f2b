"""What the bench of other people's servers judges by. The servers are not started."""

import json
from itertools import chain

import pytest

from bench.other_servers import SEARCH, gateway, llama_server, templates, visit
from bench.other_servers import __main__ as command

from .servers import ROOT

USER = {"role": "user", "content": "Hello"}
ASKED = {"role": "assistant", "content": None, "tool_calls": [{"id": "a"}]}
RESULT = {"role": "tool", "content": "5", "tool_call_id": "a"}
TOOLS = [{"type": "function", "function": {"name": SEARCH}}]
LAST = {
    "messages": [USER, ASKED, RESULT],
    "sha256": visit.hash_of([USER, ASKED, RESULT]),
    "refs": {"summaries": [3]},
}


every_template = pytest.mark.parametrize(
    "template", templates.TEMPLATES.values(), ids=templates.TEMPLATES
)


@pytest.mark.parametrize("name", command.RUNS)
def test_the_page_names_the_pinned_version(name):
    page = (ROOT / "docs" / "testing.md").read_text()
    assert f"| {command.VERSIONS[name]} |" in page


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
            {"refs": {"summaries": [3], "tools_refused": [SEARCH]}},
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


@every_template
def test_a_model_can_tell_by_a_piece_where_it_is(template):
    pieces = templates.split_all(template.texts)
    assert tuple(map("".join, pieces)) == template.texts
    said = [*chain(*pieces), *template.marks, *template.replies, template.end]
    assert len(set(said)) == len(said)
    # One letter is a token already.
    assert min(map(len, said)) > 1


@every_template
def test_a_model_calls_a_tool_that_the_site_has(template):
    start = template.call.index("{")
    call, _ = json.JSONDecoder().raw_decode(template.call[start:])
    arguments = call.get("arguments") or call["parameters"]
    assert (call["name"], list(arguments)) == (SEARCH, ["query"])


def test_a_text_without_a_piece_of_its_own_is_refused():
    with pytest.raises(ValueError, match="has no piece that is not taken"):
        templates.split("again", {"again"})


class TestPrompts:
    template = templates.TEMPLATES["hermes"]
    turn = (
        f"{template.user}Hello{template.replies[0]}{template.call}{template.end}"
        f"{template.result}{visit.FOUND}{template.end}{template.replies[0]}"
    )
    good = f"{templates.SUMMARY}{turn}{templates.ANSWER}{template.end}{turn}"

    def check(self, *prompts):
        outcome = visit.Outcome()
        llama_server.check_prompts(self.template, list(prompts), outcome)
        return len(outcome.faults)

    def test_a_whole_one_has_no_fault(self):
        assert self.check(self.turn, self.good) == 0
        # That of a later summary is none of a reply.
        assert self.check(self.good, f"{{{templates.SUMMARY_MARK} 400}}") == 0

    @pytest.mark.parametrize(
        "lost",
        [
            template.call,
            template.result,
            visit.FOUND,
            templates.ANSWER,
            templates.SUMMARY,
        ],
    )
    def test_what_it_lacks_is_found(self, lost):
        assert self.check(self.good.replace(lost, "")) == 1

    def test_a_result_that_is_asked_for_again_is_found(self):
        outcome = visit.Outcome(["done"], [{"state": "done"}] * 2)
        llama_server.check_prompts(self.template, [self.good], outcome)
        assert outcome.faults == ["a result was asked for again"]
