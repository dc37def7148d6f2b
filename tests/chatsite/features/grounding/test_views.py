"""Sources of a reply, for its owner alone."""

import pytest
from django.test import Client
from django.urls import reverse

from chatsite.features.grounding import views
from memory import actions, transcript

from ...scenes import HTMX, answer, signed_in, submit, url

pytestmark = pytest.mark.django_db

FACT = "I will stay at the Hotel Zubrowka for $2,300."


@pytest.fixture(autouse=True)
def full_pace():
    views.pace.clear()


@pytest.fixture
def told(alice):
    """Reply 4 has terms of message 1, and one that was never sent."""
    made = transcript.create_conversation(alice)
    submit(made, FACT)
    answer(made, "Noted.")
    submit(made, "Where, for <how much>?")
    answer(made, "At the Hotel Zubrowka, for 2300 dollars: <b>TX-99871</b>.")
    return made


def look(client, conversation, seq):
    address = reverse("conversation-grounding", args=[conversation.uuid, seq])
    return client.get(address, headers=HTMX)


def test_list_names_the_places(client, told):
    page = look(client, told, 4).content.decode()
    assert page.count("<li ") == 3
    assert 'data-term="Hotel Zubrowka"' in page
    assert 'data-words="$2,300"' in page
    assert page.count('data-at="seen-1"') == 2
    assert page.count("data-nowhere") == 1
    assert "not in what the model was sent" in page
    assert "<b>" not in page
    assert FACT.replace("'", "&#x27;") in page


def test_pane_of_a_reply_has_the_list(client, told):
    shown = client.get(url("context", told), {"reply": 4}, headers=HTMX)
    assert (
        reverse("conversation-grounding", args=[told.uuid, 4]) in shown.content.decode()
    )
    shown = client.get(url("context", told), headers=HTMX)
    assert "/grounding/" not in shown.content.decode()


def test_list_is_for_the_owner_alone(told, bob):
    assert look(signed_in(bob), told, 4).status_code == 404
    turned_away = look(Client(), told, 4)
    assert "/login/" in turned_away.headers["HX-Redirect"]


@pytest.mark.parametrize("seq", [1, 3, 9])
def test_other_messages_have_none(client, told, seq):
    assert look(client, told, seq).status_code == 404


def test_deleted_reply_has_none(client, told):
    actions.delete_message(told, 4)
    assert look(client, told, 4).status_code == 404


def test_requests_have_a_limit(client, told, monkeypatch):
    monkeypatch.setattr(views, "PER_MINUTE", 2)
    assert [look(client, told, 4).status_code for _ in range(3)] == [200, 200, 429]
