"""The made-up sets of the search, and what is found of them."""

from statistics import fmean

import pytest

from bench.memory.days import make_days
from bench.memory.fact_lists import make_list
from bench.memory.figures import Figures, Results
from bench.memory.many import bound
from bench.memory.many import score as score_many
from bench.memory.search import score
from bench.memory.table import renew_rows, write_row
from memory.evaluation.replay import RecordedQuestion

REPORT = {
    "prompt_tokens_per_turn": 5689.4,
    "largest_prompt": 14216,
    "cacheable_share": 0.79,
    "effective_cost_per_turn": 2021,
    "blocked_turns": 0,
    "rewrites_median": 2,
    "rewrites_max": 2,
    "never_read": 0,
    "lost": 0,
    "without_user_message": 0,
    "evidence_in_window": 0.01,
    "newest_in_request": None,
    "evidence_reachable": 0.5,
}


@pytest.mark.parametrize("half", ["seen", "unseen"])
def test_generated_days_can_be_found(half):
    for recording in make_days(half):
        ids = {message.id for message in recording.messages}
        assert len(recording.qa) >= 50
        assert all(ids.issuperset(asked.evidence_ids) for asked in recording.qa)
        assert make_days(half)[0] == make_days(half)[0]


def test_named_days_are_found_in_both_languages():
    for recording in make_days("seen"):
        ours, plain = map(fmean, zip(*score(recording), strict=True))
        assert ours >= 0.9 > plain


def test_rows_of_one_contestant_are_renewed_in_their_set():
    page = "**a**: 1\n\n| x | 1 |\n| **Windowpane** | 1 |\n\n**b**: 1\n\n| x | 2 |\n"
    figures = Figures("x", {"b": REPORT}, {"b": {"1": ["0"]}}, None, None)
    renewed = renew_rows(page, Results([figures], {"b": 1}, {}))
    assert renewed.startswith(page.partition("**b**")[0])
    assert renewed.splitlines()[-1] == write_row(figures, "b")


def test_facts_of_a_list_are_found_as_well_as_by_plain_bm25():
    ours, plain = map(fmean, zip(*score(make_list("seen")[0]), strict=True))
    assert ours >= plain


def test_questions_about_many_messages_are_scored_by_their_notes():
    (recording,) = make_list("seen")[:1]
    said = [message for message in recording.messages if message.role == "user"][:3]
    evidence, texts = [each.id for each in said], [each.content for each in said]
    asked = [
        RecordedQuestion(question=question, evidence_ids=ids)
        for question, ids in (
            ("按时间列出我说过的事：" + "".join(texts), evidence),
            ("按时间列出我说过的事：火星", evidence),
            (texts[0], evidence[:2]),  # of too few messages
        )
    ]
    scores = score_many(recording.model_copy(update={"qa": asked}))
    (found, reached, notes, chars), (missed, *_none) = scores
    assert found == reached == 1
    assert notes >= 3
    assert chars > 1
    assert missed < 1


def test_interval_is_around_the_mean():
    low, high = bound((0.0, 1.0, 0.5, 0.5) * 10)
    assert 0.3 < low < 0.5 < high < 0.7
