"""Feedback on a reply: given, changed, taken back and undone from the page."""

import pytest

from chatsite.features.feedback import services
from chatsite.features.feedback.models import Feedback
from chatsite.features.feedback.parts import FeedbackEvent
from chatsite.live import socket_client
from chatsite.protocol import events
from memory import library, transcript
from memory.models import Conversation
from tests.remembered import remembered

from ...scenes import (
    HTMX,
    Use,
    memory_url,
    page_of,
    signed_in,
    talk_in_turns,
    url,
    use_tools,
    violations,
)

pytestmark = pytest.mark.django_db(transaction=True)

WHY = "It <forgot> the budget."


@pytest.fixture
@remembered
def chat(alice):
    made = transcript.create_conversation(alice)
    talk_in_turns(made, "Hello", "Go on")
    made.refresh_from_db()
    return made


@pytest.fixture
def client(alice):
    return signed_in(alice)


@pytest.fixture
def told(monkeypatch):
    """The events that other tabs get."""
    seen = []
    monkeypatch.setattr(events, "deliver_event", lambda _pk, event: seen.append(event))
    return seen


def give(client, chat, seq=2, **fields):
    target = url("feedback", chat, seq)
    return client.post(target, fields, headers=HTMX).content.decode()


def pressed(page, seq=2):
    """The verdicts whose buttons are pressed."""
    buttons = page.split(f'id="feedback-{seq}"')[1].split("</span>")[0].split("<button")
    return [
        verdict
        for verdict, button in zip(("good", "bad"), buttons[1:3], strict=True)
        if 'aria-pressed="true"' in button
    ]


def given(chat, seq=2):
    found = services.find_feedback(chat, seq)
    return found.verdict, found.comment


def test_a_reply_has_two_buttons_and_a_message_of_ones_own_has_none(client, chat):
    page = page_of(client, chat)
    assert pressed(page) == []
    assert 'id="feedback-1"' not in page
    assert 'aria-label="Good reply"' in page


def test_feedback_is_stored_shown_and_sent_to_other_tabs(client, chat, told):
    answer = give(client, chat, verdict="bad")
    assert "Saved." in answer
    assert pressed(answer) == ["bad"]
    assert 'hx-swap-oob="true"' in answer
    assert pressed(page_of(client, chat)) == ["bad"]
    turn = chat.turns.first()
    assert told == [FeedbackEvent(turn.pk, 2, "bad")]
    assert events.to_json(told[0]) == {
        **{"type": "feedback", "turn": turn.pk},
        **{"seq": 2, "verdict": "bad"},
    }


def test_the_same_twice_is_one_and_tells_nobody_again(client, chat, told):
    for _ in range(2):
        give(client, chat, verdict="good")
    assert Feedback.objects.count() == len(told) == 1


def test_a_word_why_stays_when_the_verdict_changes(client, chat):
    assert "comment" in give(client, chat, verdict="bad", comment=f" {WHY}\r\n")
    give(client, chat, verdict="bad", comment=WHY)
    give(client, chat, verdict="good")
    assert given(chat) == ("good", WHY)


def test_the_dialog_has_what_was_written(client, chat):
    give(client, chat, verdict="bad", comment=WHY)
    dialog = client.get(url("feedback-why", chat, 2)).content.decode()
    assert "What is wrong with this reply?" in dialog
    assert "It &lt;forgot&gt; the budget.</textarea>" in dialog
    assert 'maxlength="1000"' in dialog


def test_the_dialog_says_who_reads_it(client, chat, settings):
    assert "administrators can read" in _dialog(client, chat)
    settings.STAFF_CAN_READ_CHATS = False
    assert "but no text" in _dialog(client, chat)


def _dialog(client, chat):
    return client.get(url("feedback-why", chat, 2)).content.decode()


def test_taking_it_back_is_undone_with_its_comment(client, chat):
    give(client, chat, verdict="bad", comment=WHY)
    notice = give(client, chat, verdict="")
    assert "was removed" in notice
    assert not Feedback.objects.exists()
    assert 'name="verdict" value="bad"' in notice
    assert 'name="comment" value="It &lt;forgot&gt; the budget."' in notice
    assert f'hx-post="{url("feedback", chat, 2)}"' in notice


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"verdict": "great"}, "good or bad"),
        ({"verdict": "bad", "comment": "x" * 1_001}, "limit is 1,000"),
        ({"verdict": "bad", "comment": "a\0b"}, "This is not text"),
    ],
)
def test_invalid_feedback_changes_nothing(client, chat, told, fields, why):
    give(client, chat, verdict="good", comment="Fine.")
    told.clear()
    answer = give(client, chat, **fields)
    assert why in answer
    assert 'role="alert"' in answer
    assert given(chat) == ("good", "Fine.")
    assert told == []
    plain = client.post(url("feedback", chat, 2), fields)
    assert plain.status_code == 409


def test_a_comment_counts_its_line_breaks_once(client, chat):
    # As a browser sends a thousand characters of two a line.
    give(client, chat, verdict="bad", comment="a\r\n" * 499 + "ab")
    assert given(chat) == ("bad", "a\n" * 499 + "ab")


def test_feedback_needs_a_reply(client, chat):
    use_tools(chat, "Find it", Use())
    asking = chat.messages.exclude(tool_calls=[]).get()
    for seq in (1, asking.seq, asking.seq + 1, 99):
        assert "There is no reply" in give(client, chat, seq, verdict="bad")
        assert client.get(url("feedback-why", chat, seq)).status_code == 404
    assert not Feedback.objects.exists()
    assert "Saved." in give(client, chat, asking.seq + 2, verdict="bad")


def test_a_stranger_finds_nothing(bob, chat):
    stranger = signed_in(bob)
    for name in ("feedback", "feedback-why"):
        call = stranger.post if name == "feedback" else stranger.get
        assert call(url(name, chat, 2)).status_code == 404


def test_feedback_is_deleted_with_the_text_of_its_reply(client, chat):
    for seq in (2, 4):
        give(client, chat, seq, verdict="bad", comment=WHY)
    client.post(memory_url("message", chat, seq=2, name="delete"), headers=HTMX)
    assert list(Feedback.objects.values_list("message__seq", flat=True)) == [4]
    assert "There is no reply" in give(client, chat, 2, verdict="bad")
    assert 'id="feedback-2"' not in page_of(client, chat)


def test_feedback_is_deleted_with_its_conversation(client, chat):
    give(client, chat, verdict="bad", comment=WHY)
    library.erase_conversation(Conversation.objects.get(pk=chat.pk))
    assert not Feedback.objects.exists()


def test_the_audit_finds_feedback_on_what_is_no_reply(client, chat):
    give(client, chat, verdict="bad")
    assert violations() == []
    question = chat.messages.get(seq=1)
    Feedback.objects.update(message=question)
    [found] = violations()
    assert "R6.feedback" in found
    assert "message #1" in found


def test_event_crosses_processes_and_is_drawn_beside_its_turn(chat):
    turn = chat.turns.first()
    event = FeedbackEvent(turn.pk, 2, "bad")
    wire = {"type": "chat.event", "event": events.to_json(event)}
    assert events.from_layer(wire) == event
    assert socket_client.JsonView().at_once(event)
    client = socket_client.SocketClient(chat.owner_id, "", "", chat.pk)
    view = socket_client.HtmlView()
    assert "".join(sum(view.draw_event(client, event), [])) == ""
    list(view.sync(client))
    assert pressed("".join(sum(view.draw_event(client, event), []))) == ["bad"]


def test_feedback_is_in_the_owners_log(client, chat):
    give(client, chat, verdict="good")
    [change] = chat.changes.all()
    assert (change.action, change.seq) == ("feedback", 2)
    assert change.get_action_display() == "gave feedback"


def test_replies_of_a_temporary_conversation_can_not_be_marked(client, alice):
    fleeting = transcript.create_conversation(alice, temporary=True)
    talk_in_turns(fleeting, "Hello")
    assert 'id="feedback-2"' not in page_of(client, fleeting)
    target = url("feedback", fleeting, 2)
    refused = client.post(target, {"verdict": "bad"}, headers=HTMX)
    assert "temporary conversation" in refused.content.decode()
    assert not Feedback.objects.exists()
