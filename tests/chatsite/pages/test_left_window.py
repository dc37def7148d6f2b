"""Messages that left the window without a summary, on the page."""

import html

import pytest
from asgiref.sync import async_to_sync

from chatsite.live import fragments
from chatsite.pages.presenters import context_pane
from chatsite.protocol import events
from memory import transcript
from tests.memory.scenes import compact, run_compaction

from ..scenes import HTMX, memory_url, page_of, talk_in_turns, violations

pytestmark = pytest.mark.django_db(transaction=True)
POLICY = {"strategy": "window", "trigger": ["messages", 6], "keep": ["messages", 2]}


@pytest.fixture
def left(alice):
    made = transcript.create_conversation(alice, title="Kyoto", policy=POLICY)
    talk_in_turns(made, "My cat is Mimi", "One", "Two")
    compact(made)
    talk_in_turns(made, "And now?")
    made.refresh_from_db()
    return made


def get(client, conversation, view, **values):
    target = memory_url(view, conversation)
    return html.unescape(client.get(target, values, headers=HTMX).content.decode())


def test_messages_that_left_the_window_are_marked_and_counted(client, left):
    page = html.unescape(page_of(client, left))
    assert page.count('<span class="mark mark-left">Left the window</span>') == 4
    assert "Left the window here: #1–#4, without a summary" in page
    assert "4 messages stay here in full. They are no longer sent" in page
    assert "All 8 messages accounted for" in page
    assert "4 left the window" in page
    assert "older messages leave at 6 messages, without a summary" in page
    assert "summarised (v1)" not in page.lower()
    assert violations() == []


def test_the_model_is_shown_nothing_of_them(left):
    view = context_pane.model_view(left)
    kinds = [section.kind for section in view.sections]
    assert kinds == ["provider", "system", "window"]
    assert (view.accounted, view.total) == (8, 8)


def test_an_earlier_reply_says_it_too(client, left):
    view = context_pane.model_view(left, reply=8)
    assert view.verified
    assert view.counts == {"window": 2, "newest": 1, "left": 4}
    shown = get(client, left, "moment", reply=8)
    assert shown.count("mark-left") == 4
    assert "#1–#4 had left the window, without a summary" in shown


def test_a_search_says_where_they_are(client, left):
    shown = get(client, left, "find", q="Mimi")
    assert "mark-left" in shown
    assert "It has left the window and is in no summary." in shown
    assert "Pin" in shown


def test_the_history_of_versions_says_it(client, left):
    shown = get(client, left, "summaries")
    assert "These messages left the window without a summary." in shown


def test_a_reader_of_the_page_is_told(left):
    talk_in_turns(left, "Three", "Four")
    outcome = async_to_sync(run_compaction)(left)
    event = events.Memory.from_outcome(outcome)
    assert fragments.status_of(event, left.pk) == "Messages 1–10 left the window"


def test_the_form_says_what_would_leave(client, alice):
    made = transcript.create_conversation(alice)
    talk_in_turns(made, "One", "Two", "Three")
    values = {"preset": "layered", "trigger_size": "6", "trigger_kind": "messages"}
    values |= {"keep_size": "2", "keep_kind": "messages", "strategy": "window"}
    target = memory_url("estimate", made)
    shown = client.post(target, values, headers=HTMX).content.decode()
    assert "messages #1–#4 leave the window right away, without a summary" in shown
