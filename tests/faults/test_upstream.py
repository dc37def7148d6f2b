"""Whatever the provider does, the turn ends, and screen and database say the same."""

import pytest

pytestmark = [pytest.mark.fault, pytest.mark.database("sqlite")]

# What the provider does: the state the turn ends in, the error's code, the text that
# is kept ("" = none, None = anything).
OUTCOMES = {
    "ok": ("done", "", "Reply to: mode=ok"),
    "429-retry-after:1|ok": ("done", "", None),
    "429|ok": ("done", "", None),
    "500|503|ok": ("done", "", None),
    "reset-first|ok": ("done", "", None),
    "429": ("failed", "rate_limited", ""),
    "429-retry-after:60": ("failed", "rate_limited_long", ""),
    "402": ("failed", "quota", ""),
    "500": ("failed", "unavailable", ""),
    "503": ("failed", "unavailable", ""),
    "reset": ("failed", "unavailable", "Before the reset"),
    "cut": ("failed", "unavailable", "Before the cut"),
    "eof": ("truncated", "no_finish_reason", "This reply just"),
    "no-reason": ("truncated", "no_finish_reason", "This reply is"),
    "length": ("truncated", "length", "This reply is"),
    "reason:max_tokens": ("truncated", "length", "This reply is"),
    "reason:abort": ("truncated", "cut_off:abort", "This reply is"),
    "bad-json": ("failed", "bad_response", "Before the noise"),
    "bad-shape": ("failed", "bad_response", "Before the noise"),
    "bad-utf8": ("failed", "bad_response", "Before the noise"),
    "error-event": ("failed", "unavailable", "Before the error"),
    "html": ("failed", "bad_response", ""),
    "empty": ("failed", "bad_response", ""),
    "hang": ("failed", "timeout", ""),
    "hang-mid": ("failed", "timeout", "Before the silence"),
    "hang-end": ("done", "", "All is said"),
    "drip": ("failed", "timeout", None),
    "comments": ("failed", "timeout", ""),
    "400-context": ("failed", "context_length", ""),
    "nul": ("done", "", "ab"),
    "surrogate": ("done", "", "a�b�"),
    "split-surrogate": ("done", "", "smile \U0001f600!"),
    "huge:1000000": ("truncated", "length", None),
    "empty-deltas:5000": ("done", "", "At last."),
    "think": ("done", "", "Hello there!"),
    "reasoning": ("done", "", "The answer."),
    "only-reasoning": ("failed", "only_reasoning", ""),
    "refusal": ("done", "", "I cannot talk about that."),
    "bom": ("done", "", "First, second."),
    "plain-json": ("done", "", "Reply to: mode=plain-json"),
    "after-stop": ("done", "", "All is said."),
    "empty-forever": ("failed", "timeout", ""),
    "foreign-events": ("done", "", "Honest reply"),
}


@pytest.fixture(scope="module")
def outcomes():
    return {}


@pytest.fixture
def outcome(single, outcomes, crowd):
    """Return the end of each mode; all of them are tried at once, by the first test."""
    if not outcomes:
        viewers = {mode: crowd.open(single.sites, single.create()) for mode in OUTCOMES}
        for mode, viewer in viewers.items():
            viewer.story = viewer.send(f"mode={mode}")
        single.settle_and_check(viewers.values())
        rows = {row.client_id: row for row in single.truth.rows()}
        outcomes |= {mode: rows[viewer.story] for mode, viewer in viewers.items()}
    return outcomes


@pytest.mark.parametrize("mode", OUTCOMES)
def test_turn_ends_as_expected(outcome, mode):
    state, error, text = OUTCOMES[mode]
    row = outcome[mode]
    assert (row.state, row.error) == (state, error)
    if text is not None:
        assert row.text == text
    assert "\0" not in row.text
