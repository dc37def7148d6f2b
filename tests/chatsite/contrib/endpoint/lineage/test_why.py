"""The page of why: words for every code, and what a client has changed or forgotten."""

import json
import typing

import pytest
from asgiref.sync import async_to_sync
from django.urls import reverse

from chatsite.contrib.endpoint import keys
from chatsite.contrib.endpoint.identity.decision import WHY as CODES
from chatsite.contrib.endpoint.identity.decision import Kind
from chatsite.contrib.endpoint.lineage.reason_texts import LINEAGES, WHY
from chatsite.contrib.endpoint.models import ClientConversation
from chatsite.contrib.endpoint.store.owner_history import OwnerHistory
from memory.models import Conversation, ModelCall
from tests.chatsite.scenes import menu_of, page_of, signed_in, url, violations

from ..asgi_client import Call, send

pytestmark = pytest.mark.django_db(transaction=True)


def says(text):
    return {"role": "user", "content": text}


def replies(text):
    return {"role": "assistant", "content": f"Reply to: {text}"}


def instructs(text):
    return {"role": "system", "content": text}


FERRY = "When does the ferry from Kobe to the island of Shodo leave?"
BACK = "And when does the last one of the day come back from there?"
TALK = [says(FERRY), replies(FERRY), says(BACK), replies(BACK)]


@pytest.fixture
def key(alice, upstream):
    return keys.create_api_key(alice, "Open WebUI")[1]


def why(client, conversation, **query):
    answer = client.get(reverse("endpoint-why", args=[conversation.uuid]), query)
    assert answer.status_code == 200
    return answer.content.decode()


def test_every_code_has_its_words():
    assert {*WHY} == {*CODES}
    assert {*LINEAGES} == {*typing.get_args(Kind)}


def test_the_page_says_why_and_leads_to_the_reply(client, key):
    send(key, TALK[0])
    send(key, *TALK[:3])
    made = Conversation.objects.get()
    page = why(client, made)
    assert str(LINEAGES["continued"]) in page
    assert str(WHY["tip"]) in page
    assert str(WHY["one-message"]) in why(client, made, reply=2)
    assert "No request for reply #3 came here." in why(client, made, reply=3)
    link = f"{reverse('endpoint-why', args=[made.uuid])}?reply=4"
    assert link in menu_of(client, made, 4)
    pane = client.get(url("context", made), {"reply": 4}).content.decode()
    assert link in pane
    assert str(LINEAGES["continued"]) in pane


def test_changed_instructions_and_messages_are_shown(client, key):
    send(key, instructs("It is Monday."), TALK[0])
    wrapped = says(f"{FERRY}\n\n<context>Ferries leave at nine.</context>")
    said = [wrapped, replies(FERRY), says(BACK)]
    send(key, instructs("It is Tuesday."), *said)
    made = Conversation.objects.get()
    page = why(client, made)
    assert str(WHY["rewritten"]) in page
    assert "<del>Monday</del><ins>Tuesday</ins>" in page
    assert "Your client reworded these messages" in page
    assert "Ferries" in page
    # The right pane has what was sent, too, and not the words of the transcript.
    pane = client.get(url("context", made), {"reply": 4}).content.decode()
    assert "Ferries leave at nine." in pane
    assert violations() == []


def test_a_changed_message_is_known_in_its_last_form(alice, client, key):
    send(key, TALK[0])
    wrapped = says(f"{FERRY}\n\n<context>Ferries leave at nine.</context>")
    send(key, wrapped, replies(FERRY), says(BACK))
    made = ClientConversation.objects.get()
    found = OwnerHistory(alice.pk).read_text(str(made.pk), 0)
    assert found == wrapped["content"]


def test_page_names_forgotten_messages_in_later_requests(client, key):
    send(key, TALK[0])
    send(key, *TALK[:3])
    summary = says("Before this, we spoke about ferries to the island.")
    # What it says next was said before, word for word.
    kept = [summary, *TALK[2:], TALK[0]]
    assert send(key, *kept)["x-windowpane-lineage"] == "client-compacted"
    kept += [replies(FERRY), says("And tomorrow?")]
    assert send(key, *kept)["x-windowpane-lineage"] == "continued"
    made = Conversation.objects.get()
    for page in (why(client, made, reply=7), why(client, made)):
        assert "Your client forgot this" in page
        assert "#1–#2</a>" in page
    calls = ModelCall.objects.order_by("pk")
    assert [call.refs["window"] for call in calls][-1] == [[3, 7]]
    assert violations() == []


def test_calls_beside_a_conversation_lead_to_it(client, key):
    headers = {"x_openwebui_chat_id": "chat-7"}
    send(key, TALK[0], headers=headers)
    send(key, *TALK[:3], headers=headers)
    send(key, says("Make a title for it."), headers=headers)
    main, single = Conversation.objects.order_by("pk")
    assert "A single call beside" in page_of(client, single)
    assert "a single call beside this" in why(client, main)
    assert "chat-7" in why(client, single)


def test_page_is_missing_for_other_users(bob, client, key, conversation):
    send(key, TALK[0])
    made = Conversation.objects.order_by("-pk").first()
    stranger = signed_in(bob)
    for each in (made, conversation):
        address = reverse("endpoint-why", args=[each.uuid])
        assert stranger.get(address).status_code == 404
    # What is the site's own has no client.
    assert client.get(address).status_code == 404


def test_a_history_of_short_words_is_put_together_again(client, key):
    """Each piece is kept once, so a body refers to them here and there."""
    said = [each for n in range(600) for each in (says(f"{n}"), says("ok"))]
    send(key, *said)
    made = Conversation.objects.get()
    shown = client.get(url("context-json", made), {"reply": 1201}).json()
    assert shown["messages"] == said
    assert why(client, made)


def test_items_of_responses_are_read_as_the_message_that_they_are(client, key):
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    items = [says("Hi"), {"type": "reasoning", "id": "r", "summary": []}, call]
    items += [{"type": "function_call_output", "call_id": "c", "output": "Two."}]
    raw = json.dumps({"model": "ok", "input": items}).encode()
    async_to_sync(Call("/v1/responses", raw, key=key).run)()
    page = why(client, Conversation.objects.get())
    assert "reworded" not in page
