"""The page that a conversation begins on."""

import pytest

from chatsite.turns.models import Preferences, Turn
from memory import library
from memory.models import Conversation

from ..scenes import HTMX, signed_in, url

OPTIONS = {
    "title": "Ahoy",
    "preset": "langgraph",
    "temperature": "0.3",
    "system_prompt": "Like a pirate.",
}


@pytest.fixture(autouse=True)
def models(settings):
    settings.CHAT_MODELS = ["other-model"]


def begin(client, **fields):
    return client.post("/c/", fields, headers=HTMX)


def test_looking_at_it_stores_nothing(client):
    page = client.get("/").content.decode()
    assert 'name="first"' in page
    assert "No conversations yet." in page
    assert not Conversation.objects.exists()


def test_home_explains_the_site_until_there_is_a_conversation(client):
    assert "Two views of every conversation" in _page(client)
    begin(client, first="Hello")
    assert "Two views of every conversation" not in _page(client)
    assert "Watch the demo" in _page(client)


def test_the_first_message_makes_the_conversation(client):
    answer = begin(client, first="Hello", model="other-model", **OPTIONS)
    made = Conversation.objects.get()
    assert answer.headers["HX-Redirect"] == url("detail", made)
    assert made.messages.get().text == "Hello"
    assert made.turns.get().state == Turn.State.QUEUED
    assert (made.title, made.policy) == ("Ahoy", {"preset": "langgraph", "facts": "on"})
    assert (made.model, made.temperature) == ("other-model", 0.3)
    assert made.system_prompt == "Like a pirate."


def test_the_sites_own_model_is_stored_by_no_name(client, alice):
    Preferences.objects.create(user=alice, model="other-model")
    assert '<option value="other-model" selected>' in _page(client)
    begin(client, first="Hello", model="demo")
    assert Conversation.objects.get().model == ""


def _page(client):
    return " ".join(client.get("/").content.decode().split())


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"first": " \n"}, "The message is empty"),
        ({"first": "x" * 32_001}, "the limit is 32,000"),
        ({"first": "a\0b"}, "Message: Null characters"),
        ({"first": "Kept", "temperature": "3"}, "Temperature: Ensure this value"),
        ({"first": "Kept", "temperature": "nan"}, "Temperature: Enter a number"),
    ],
    ids=["blank", "long", "NUL", "hot", "no number"],
)
def test_refused_message_stays_in_the_box_with_the_reason(client, fields, said):
    fragment = begin(client, **fields)
    assert fragment.status_code == 200
    assert said in fragment.content.decode()
    whole = client.post("/c/", fields)
    assert whole.status_code == 400
    page = whole.content.decode()
    assert said in page
    assert fields["first"].strip(" \n\0") in page
    assert not Conversation.objects.exists()


@pytest.mark.parametrize("headers", [HTMX, {}], ids=["htmx", "plain"])
def test_a_message_that_is_sent_twice_leads_to_one_conversation(client, headers):
    message = {"first": "Hello", "client_id": "same"}
    answers = [client.post("/c/", message, headers=headers) for _ in range(2)]
    led_to = [answer.headers.get("HX-Redirect") or answer.url for answer in answers]
    assert led_to == [url("detail", Conversation.objects.get())] * 2
    client.post("/c/", {**message, "first": "Something else"})
    assert Conversation.objects.count() == 2


def test_the_id_of_a_message_leads_only_to_what_is_ones_own(client, bob):
    message = {"first": "Hello", "client_id": "same"}
    signed_in(bob).post("/c/", message)
    answer = client.post("/c/", message)
    made = Conversation.objects.exclude(owner=bob).get()
    assert answer.url == url("detail", made)
    library.delete_conversation(made)
    assert client.post("/c/", message).url != url("detail", made)


def test_a_line_break_of_the_box_is_one_character(client):
    client.post("/c/", {"first": "One\r\ntwo"})
    assert Conversation.objects.get().messages.get().text == "One\ntwo"


def test_a_model_that_is_not_offered_is_no_choice(client):
    page = client.post("/c/", {"first": "", "model": "evil"}).content.decode()
    assert 'value="other-model"' in page
    assert "evil" not in page


def test_model_list_is_hidden_when_there_is_one_model(client, settings):
    settings.CHAT_MODELS = []
    assert 'name="model"' not in _page(client)
