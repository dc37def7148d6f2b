"""Rules on the page: offered at the message, listed on the right, and on the account
page."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from chatsite.features.rules import services
from chatsite.jobs import summary_proposals
from chatsite.pages.presenters import context_pane
from chatsite.turns.models import Preferences
from memory import actions, transcript
from memory.models import Conversation
from memory.view import rebuilding

from ...scenes import (
    HTMX,
    answer,
    memory_url,
    page_of,
    signed_in,
    submit,
    talk_in_turns,
)

pytestmark = pytest.mark.django_db(transaction=True)

WORDS = "Always answer in <rhyme>."
SHOWN = "Always answer in &lt;rhyme&gt;."
OFFER = "Keep this as a rule?"


@pytest.fixture
def chat(alice):
    made = transcript.create_conversation(alice)
    talk_in_turns(made, WORDS)
    made.refresh_from_db()
    return made


@pytest.fixture
def client(alice):
    return signed_in(alice)


def act(client, chat, name, **fields):
    rule = chat.rules.latest("pk")
    view, extra = ("rule", {"name": name}) if name != "reword" else ("rule-reword", {})
    target = memory_url(view, chat, pk=rule.pk, **extra)
    answer = client.post(target, fields, headers=HTMX)
    chat.refresh_from_db()
    return answer.content.decode()


def pane(client, chat):
    return client.get(
        reverse("conversation-context", args=[chat.uuid])
    ).content.decode()


def test_tap_keeps_an_offered_rule(client, chat):
    assert OFFER in page_of(client, chat)
    assert "part-rules" not in pane(client, chat)
    assert "Saved." in act(client, chat, "keep")
    page = page_of(client, chat)
    assert OFFER not in page
    assert "Kept for the whole conversation: <q" in " ".join(page.split())
    shown = pane(client, chat)
    assert "part-rules" in shown
    assert SHOWN in shown
    assert f"{chat.created_at:%Y-%m-%d}" in shown


def test_a_message_that_is_hidden_offers_nothing(client, chat):
    actions.exclude_messages(chat, [1])
    assert OFFER not in page_of(client, chat)


def test_every_action_can_be_undone(client, chat):
    rule = chat.rules.get()
    for name, undo in (("keep", "offer"), ("dismiss", "keep"), ("offer", "dismiss")):
        notice = act(client, chat, name)
        assert memory_url("rule", chat, pk=rule.pk, name=undo) in notice


def test_a_rule_is_edited_in_place_and_undone(client, alice):
    chat = transcript.create_conversation(alice, policy={"rules": "keep"})
    talk_in_turns(chat, "Call me Sam.", WORDS)
    rows, rule = chat.rules.order_by("pk").values(), chat.rules.latest("pk")
    before = list(rows)
    assert [row["state"] for row in before] == ["kept", "kept"]
    form = client.get(memory_url("rule-edit", chat, pk=rule.pk))
    assert SHOWN in form.content.decode()
    notice = act(client, chat, "reword", text="Call me Kim.")
    assert "Call me Kim.</q>" in pane(client, chat)
    edited = list(rows.all())
    assert [row["state"] for row in edited] == ["replaced", "confirmed"]
    assert memory_url("rule-reword", chat, pk=rule.pk) in notice
    again = act(client, chat, "reword", undo=read_undo(notice))
    assert list(rows.all()) == before
    assert f"{SHOWN}</q>" in pane(client, chat)
    act(client, chat, "reword", undo=read_undo(again))
    assert list(rows.all()) == edited


def test_undo_does_not_overwrite_newer_words(client, chat):
    undo = read_undo(act(client, chat, "reword", text="Answer in prose."))
    newer = read_undo(act(client, chat, "reword", text="Answer in verse."))
    assert "changed again since" in act(client, chat, "reword", undo=undo)
    target = memory_url("rule-reword", chat, pk=chat.rules.get().pk)
    assert client.post(target, {"undo": undo}).status_code == 409
    assert chat.rules.get().text == "Answer in verse."
    act(client, chat, "reword", undo=newer)
    act(client, chat, "reword", undo=undo)
    assert f"{SHOWN}</q>" not in pane(client, chat)
    assert (chat.rules.get().text, chat.rules.get().state) == ("", "offered")


@pytest.mark.parametrize(
    ("acts", "changes"),
    [(["keep"], 1), (["decline", "offer"], 0), (["keep", "dismiss"], 2)],
)
def test_the_desk_counts_decisions_that_change_the_request(client, chat, acts, changes):
    for name in acts:
        act(client, chat, name)
    assert context_pane.model_view(chat).desk.changes == changes


def test_undo_of_an_edited_rule_is_signed_and_needs_its_room(client, alice, chat):
    act(client, chat, "keep")
    undo = read_undo(act(client, chat, "reword", text="Answer in prose."))
    other = transcript.create_conversation(alice)
    talk_in_turns(other, WORDS)
    for target, sent in ((chat, f"{undo}x"), (other, undo)):
        assert "no longer exists" in act(client, target, "reword", undo=sent)
    with pytest.raises(transcript.ActionError, match="no room"):
        services.reword_rule(chat, chat.rules.get().pk, room=0, undo=undo)
    assert [row.text for row in chat.rules.all()] == ["Answer in prose."]


def read_undo(notice):
    return re.search(r'name="undo" value="([^"]+)"', notice)[1]


def test_rule_without_room_is_refused_with_a_sentence(client, alice, settings):
    settings.CONTEXT_WINDOW = 2000
    chat = transcript.create_conversation(alice, policy={"rules": "keep"})
    talk_in_turns(chat, *(f"Always name city number {n} first." for n in range(12)))
    shown = pane(client, chat)
    assert "do not fit and are not sent" in shown
    assert "3 % of a request" in shown


def test_replaced_rule_is_listed_and_can_be_restored(client, alice):
    chat = transcript.create_conversation(alice, policy={"rules": "keep"})
    talk_in_turns(chat, "Always use bullet points.", "Forget the bullet points.")
    assert "1 rule was replaced" in pane(client, chat)
    act(client, chat, "keep")
    assert "part-rules" in pane(client, chat)
    act(client, chat, "replace")
    assert "1 rule was replaced" in pane(client, chat)


def test_a_past_request_shows_the_rules_that_it_had(client, chat):
    act(client, chat, "keep")
    talk_in_turns(chat, "Go on")
    reply = chat.messages.latest("seq").seq
    act(client, chat, "dismiss")
    target = reverse("conversation-context", args=[chat.uuid])
    shown = client.get(target, {"reply": reply}).content.decode()
    assert "part-rules" in shown
    assert SHOWN in shown
    assert "Remove the rule" not in shown


@pytest.mark.parametrize("name", ["keep", "dismiss", "offer"])
def test_other_users_cannot_act(bob, chat, name):
    target = memory_url("rule", chat, pk=chat.rules.get().pk, name=name)
    assert signed_in(bob).post(target, headers=HTMX).status_code == 404
    assert chat.rules.get().state == "offered"


def test_an_unknown_action_or_rule_is_refused(client, chat):
    pk = chat.rules.get().pk
    assert client.post(memory_url("rule", chat, pk=pk, name="fly")).status_code == 404
    target = memory_url("rule", chat, pk=pk + 1, name="keep")
    assert "no longer exists" in client.post(target, headers=HTMX).content.decode()
    target = memory_url("rule-edit", chat, pk=pk + 1)
    assert client.get(target, headers=HTMX).status_code == 404


def test_pages_without_rules_ask_for_none(client, alice):
    chat = transcript.create_conversation(alice)
    talk_in_turns(chat, "Hello")
    with CaptureQueriesContext(connection) as queries:
        page_of(client, chat)
    assert not [each for each in queries if "memory_rule" in each["sql"]]


def test_new_conversations_begin_with_the_own_list(client, alice):
    fields = {
        "rules": "keep",
        "own_rules": "Be brief.\n\nNo jargon.\n",
        "with_own_rules": "on",
    }
    client.post(reverse("account"), fields)
    client.post(reverse("conversation-create"), {"title": "A"})
    made = Conversation.objects.get(title="A")
    assert made.policy["rules"] == "keep"
    texts = [rule.text for rule in made.rules.order_by("pk")]
    assert texts == ["Be brief.", "No jargon."]
    submit(made, "Hello")
    answer(made)
    assert "your own list" in pane(client, made)


def test_the_own_list_is_off_by_default(client, alice):
    client.post(reverse("account"), {"own_rules": "Be brief."})
    assert Preferences.objects.get(user=alice).own_rules == "Be brief."
    client.post(reverse("conversation-create"), {"title": "A"})
    assert not Conversation.objects.get(title="A").rules.exists()


@pytest.mark.parametrize("text", ["x" * 301, "\n".join(map(str, range(21)))])
def test_long_list_of_own_rules_is_refused(client, alice, text):
    answer = client.post(reverse("account"), {"own_rules": text})
    assert answer.status_code == 422
    assert "At most 20 rules" in answer.content.decode()


def test_a_focus_reaches_the_summariser(client, alice):
    chat = transcript.create_conversation(alice, policy={"focus": "all prices"})
    talk_in_turns(chat, *map(str, range(4)))
    target = memory_url("propose", chat, seq=2)
    client.post(target, {"focus": "all names"}, headers=HTMX)
    assert chat.jobs.get().values["focus"] == "all names"
    shown = client.post(target, {"focus": "x" * 501}, headers=HTMX).content.decode()
    assert "up to 500 characters" in shown
    assert "x" * 501 in shown


def test_a_focus_stays_when_the_summariser_fails(client, alice):
    chat = transcript.create_conversation(alice)
    talk_in_turns(chat, *map(str, range(4)))
    summary_proposals.start_proposal(chat, 2, "", "all names")
    chat.jobs.update(state="failed", error="It failed.")
    shown = client.get(memory_url("proposal", chat, seq=2)).content.decode()
    assert "Try again" in shown
    assert 'value="all names"' in shown


def test_context_json_names_the_rules(client, chat):
    act(client, chat, "keep")
    target = reverse("conversation-context-json", args=[chat.uuid])
    refs = client.get(target).json()["refs"]
    assert refs["rules"] == [[1, 0, len(WORDS)]]
    assert rebuilding.missing_rules(chat) == []
