"""The right pane's bar and numbers."""

import pytest

from chatsite.pages.presenters import context_pane
from memory import actions, transcript
from memory.models import ModelCall
from tests.memory.scenes import plant, summarise

from ..scenes import signed_in, talk_in_turns, url

IN_WINDOW = ("window", "newest")


def gauge_of(conversation):
    return context_pane.model_view(conversation).gauge


def make(user, *texts, **policy):
    made = transcript.create_conversation(user, policy=policy)
    talk_in_turns(made, *texts)
    return made


def test_segments_are_adjacent_and_in_the_order_of_the_payload(alice):
    made = make(alice, "One", "Two", "Three")
    summarise(made, 1, 2)
    segments = gauge_of(made).segments
    assert [segment.kind for segment in segments] == [
        *("system", "summaries", "window", "free", "reserve"),
    ]
    ends = [segment.x + segment.width for segment in segments]
    assert [segment.x for segment in segments] == [0, *ends[:-1]]
    assert ends[-1] == 1000


def test_sections_add_up_to_the_used_tokens(alice):
    view = context_pane.model_view(make(alice, "One", "Two"))
    assert view.gauge.used == sum(part.tokens for part in view.sections)


def test_first_bar_is_the_window_of_the_model(alice, settings):
    settings.CONTEXT_WINDOW = 2000
    gauge = gauge_of(make(alice, "One", "Two"))
    taken = [each for each in gauge.segments if each.kind not in ("free", "reserve")]
    share = sum(each.width for each in taken) / 1000
    assert share == pytest.approx(gauge.used / 2000, abs=0.01)
    assert gauge.segments[-1].width == pytest.approx(gauge.reserve / 2, abs=2)


def test_second_bar_leads_to_the_next_compaction(alice):
    made = make(alice, "One", trigger=["tokens", 1000], keep=["tokens", 100])
    made.refresh_from_db()
    view = context_pane.model_view(made, draft="word " * 100)
    gauge = view.gauge
    assert [each.kind for each in gauge.window_segments] == ["window", "newest"]
    counted = sum(each.tokens for each in view.sections if each.kind in IN_WINDOW)
    assert (gauge.window_tokens, gauge.window_limit) == (counted, 1000)
    last = gauge.window_segments[-1]
    assert last.x + last.width == pytest.approx(counted, abs=1)
    page = signed_in(alice).get(url("context", made)).content.decode()
    assert "of 1,000 tokens until they are summarised" in page


def test_past_the_mark_its_second_bar_is_full_and_says_so(alice):
    made = make(alice, "word " * 1200, trigger=["tokens", 1000], keep=["tokens", 100])
    made.refresh_from_db()
    gauge = gauge_of(made)
    assert gauge.window_tokens > gauge.window_limit == 1000
    page = signed_in(alice).get(url("context", made)).content.decode()
    shown = f"{gauge.window_tokens:,}"
    assert f"Summarising soon ({shown} of 1,000 tokens)" in page
    assert "until they are summarised" not in page
    gauge = context_pane.model_view(made, draft="word " * 600).gauge
    parts = gauge.window_segments
    assert sum(each.tokens for each in parts) == gauge.window_tokens
    shares = [1000 * each.tokens / gauge.window_tokens for each in parts]
    assert [each.width for each in parts] == pytest.approx(shares, abs=1)


def test_a_share_of_the_window_has_its_place_on_the_first_bar(alice):
    gauge = gauge_of(make(alice, "One", preset="deepagents"))
    assert (gauge.compact_x, gauge.window_limit) == (850, None)


@pytest.mark.parametrize("policy", [{"preset": "langgraph"}, {"enabled": False}])
def test_second_bar_needs_a_trigger_in_tokens(alice, policy):
    made = make(alice, "One", **policy)
    assert gauge_of(made).window_limit is None
    page = signed_in(alice).get(url("context", made)).content.decode()
    assert "until they are summarised" not in page


def test_a_trigger_in_messages_has_no_place_on_the_bar(alice):
    view = context_pane.model_view(make(alice, "One", preset="langgraph"))
    assert view.gauge.compact_x is None
    assert view.compact_rule == "7 messages"


def test_the_rule_is_told_in_words(alice):
    trigger = [["tokens", 4000], {"messages": 6, "idle": 60}]
    made = make(alice, trigger=trigger, keep=["messages", 2], strategy="running")
    rule = context_pane.model_view(made).compact_rule
    assert rule == "4,000 tokens or 6 messages and 60 seconds idle"


def test_a_full_window_shows_the_reserve(alice, settings):
    settings.CONTEXT_WINDOW = 400
    made = make(alice, "word " * 100)
    gauge = gauge_of(made)
    assert gauge.segments[-1].kind == "reserve"
    assert gauge.capacity == 400
    assert all(0 <= segment.x + segment.width <= 1000 for segment in gauge.segments)


def test_pane_shows_the_error_of_the_estimate(alice):
    made = make(alice, "One")
    plant(ModelCall.objects.get(), tokens_estimated=44)
    assert context_pane.model_view(made, reply=2).drift == "+10 %"
    ModelCall.objects.update(tokens_input=None)
    assert context_pane.model_view(made, reply=2).drift == ""


def test_pane_names_a_deleted_message_when_the_hash_differs(alice):
    made = make(alice, "One", "Two")
    actions.delete_message(made, 1)
    client, address = signed_in(alice), url("context", made)
    then = client.get(f"{address}?reply=4").content.decode()
    assert "one of its messages was deleted later" in then
    assert "does not match" not in then
    assert "3 messages before this reply" in then
    now = client.get(address).content.decode()
    assert "All 4 messages accounted for" in now
    assert "1 deleted" in now


@pytest.mark.parametrize("policy", [{"preset": "gone"}, ["layered"]])
def test_a_policy_that_is_not_valid_costs_no_reply_and_is_told(alice, policy):
    made = make(alice, "One")
    plant(made, policy=policy)
    made.refresh_from_db()
    talk_in_turns(made, "Two")
    assert made.messages.last().text == "Reply to: Two"
    page = signed_in(alice).get(url("detail", made)).content.decode()
    assert "are not valid, so the default applies" in page
