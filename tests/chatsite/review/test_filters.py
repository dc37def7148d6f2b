"""Conversations in the admin, narrowed to those that a question is about."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from chatsite.features.feedback import services as feedback
from chatsite.features.labels.services import find_or_make_labels
from chatsite.features.sharing import services as sharing
from chatsite.review import filters
from chatsite.turns.models import Turn
from memory import transcript
from memory.models import Conversation
from tests.memory.scenes import plant

from ..scenes import submit, talk_in_turns

pytestmark = pytest.mark.django_db
LIST = "admin:memory_conversation_changelist"
ODD = ["\0", "x" * 300, "-1", "9" * 40, "٣", ""]


@pytest.fixture
def both(alice, bob):
    """Return a conversation of Alice that each filter finds, and one of Bob that none
    does.
    """
    policy = {"preset": "guide"}
    found = transcript.create_conversation(alice, title="Found", policy=policy)
    other = transcript.create_conversation(bob, title="Other")
    for each in (found, other):
        talk_in_turns(each, "One")
    feedback.give_feedback(found, 2, "bad")
    feedback.give_feedback(other, 2, "good")
    sharing.revoke_share(found, sharing.create_share(found).pk)
    sharing.create_share(found)
    find_or_make_labels(alice, ["Mine"])[0].conversations.add(found)
    submit(found, "Two")
    found.turns.filter(user_message__seq=3).update(state=Turn.State.FAILED)
    rows = Conversation.objects.filter(pk=found.pk)
    rows.update(imported_from="chatgpt:1", model="other-model")
    rows = Conversation.objects.filter(pk=other.pk)
    rows.update(imported_from="client:key")
    return found, other


def titles(client, **params):
    answer = client.get(reverse(LIST), params)
    assert answer.status_code == 200
    rows = answer.context["cl"].result_list
    return {row.title_head for row in rows}


@pytest.mark.parametrize(
    ("name", "value", "against"),
    [
        ("failed", "yes", "no"),
        ("bad", "yes", "no"),
        ("shared", "now", "no"),
        ("shared", "once", "no"),
        ("labelled", "yes", "no"),
        ("preset", "guide", "layered"),
        ("model", "other-model", "demo"),
    ],
)
def test_filter_finds_conversations(reviewer, both, settings, name, value, against):
    settings.CHAT_MODEL = "demo"
    settings.CHAT_MODELS = ["other-model"]
    assert titles(reviewer, **{name: value}) == {"Found"}
    assert titles(reviewer, **{name: against}) == {"Other"}


def test_messages_of_a_client_are_not_imported(reviewer, both):
    assert titles(reviewer, imported="yes") == {"Found"}
    assert titles(reviewer, imported="no") == set()


def test_a_model_that_is_not_offered_is_another_one(reviewer, both, settings):
    settings.CHAT_MODEL, settings.CHAT_MODELS = "demo", []
    assert titles(reviewer, model="*") == {"Found"}


def test_a_preset_that_is_none_is_not_valid(reviewer, both):
    plant(both[0], policy={"preset": "none of them"})
    assert titles(reviewer, preset="other") == {"Found"}


def test_an_ended_link_is_no_open_one(reviewer, both):
    for link in both[0].shares.all():
        sharing.revoke_share(both[0], link.pk)
    assert titles(reviewer, shared="now") == set()
    assert titles(reviewer, shared="once") == {"Found"}


def test_an_owner_is_chosen_even_if_others_were_here_later(
    reviewer, both, alice, bob, monkeypatch
):
    monkeypatch.setattr(filters, "NEWEST", 1)
    link = f'<a href="?owner={bob.pk}">bob</a>'
    assert link not in reviewer.get(reverse(LIST)).content.decode()
    assert titles(reviewer, owner=bob.pk) == {"Other"}
    assert link in reviewer.get(reverse(LIST), {"owner": bob.pk}).content.decode()


@pytest.mark.parametrize("value", ODD)
def test_odd_values_find_all(reviewer, both, value):
    for name in ("owner", "model", "preset", "failed", "bad", "shared", "imported"):
        assert titles(reviewer, **{name: value}) == {"Found", "Other"}


def test_filters_take_as_many_queries_for_many_rows_as_for_few(
    client, staff_with, both, alice
):
    client.force_login(staff_with("metadata"))
    chosen = {"failed": "yes", "bad": "no", "shared": "no", "labelled": "no"}
    chosen |= {"model": "demo", "preset": "layered", "owner": alice.pk}
    client.get(reverse(LIST), chosen)
    with CaptureQueriesContext(connection) as few:
        client.get(reverse(LIST), chosen)
    for _each in range(3):
        made = transcript.create_conversation(alice)
        submit(made, "One")
        made.turns.update(state=Turn.State.FAILED)
    with CaptureQueriesContext(connection) as many:
        answer = client.get(reverse(LIST), chosen)
    assert len(answer.context["cl"].result_list) == 3
    assert len(many) <= len(few) + 1 <= 9
