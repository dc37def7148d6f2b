"""Notes below messages of the transcript: changes and omissions of a client, and the
agents that it started.
"""

import json
import re

import pytest
from asgiref.sync import async_to_sync
from django.urls import reverse

from chatsite.contrib.endpoint import keys
from chatsite.contrib.endpoint.lineage import notes
from chatsite.contrib.endpoint.models import ClientConversation
from memory.models import Conversation
from tests.chatsite.scenes import menu_of, page_of, violations

from ..asgi_client import Call, send
from .test_why import BACK, FERRY, TALK, instructs, replies, says, why

pytestmark = pytest.mark.django_db(transaction=True)
CHANGED = "Your client changed its instructions."
REWRITTEN = "Your client reworded earlier messages."
HAS_FORGOTTEN = "Your client has forgotten earlier messages."
FORGOT = "Your client forgot this"


@pytest.fixture
def key(alice, upstream):
    return keys.create_api_key(alice, "Claude Code")[1]


def find_notes(client, conversation):
    """Return the notes below each message of the page."""
    found = {}
    page = page_of(client, conversation)
    for seq, said in re.findall(r'id="message-(\d+)"(.*?)</article>', page, re.DOTALL):
        wanted = (CHANGED, REWRITTEN, HAS_FORGOTTEN, FORGOT, "Agents beside this:")
        if told := [each for each in wanted if each in said]:
            found[int(seq)] = told
    return found


def test_changed_instructions_have_a_note(client, key):
    send(key, instructs("It is Monday."), TALK[0])
    send(key, instructs("It is Tuesday."), *TALK[:3])
    send(key, instructs("It is Tuesday."), *TALK, TALK[0])
    made = Conversation.objects.get()
    assert find_notes(client, made) == {3: [CHANGED]}
    link = f"{reverse('endpoint-why', args=[made.uuid])}?reply=4"
    assert link in menu_of(client, made, 4)
    assert violations() == []


def test_note_is_shown_before_there_is_a_reply(client, key):
    send(key, instructs("It is Monday."), TALK[0])
    said = [instructs("It is Tuesday."), *TALK[:3]]
    raw = json.dumps({"model": "500", "messages": said}).encode()
    async_to_sync(Call("/v1/chat/completions", raw, key=key).run)()
    assert find_notes(client, Conversation.objects.get()) == {3: [CHANGED]}


def test_rewritten_messages_are_noted_once(client, key):
    send(key, TALK[0])
    wrapped = says(f"{FERRY}\n\n<context>Ferries leave at nine.</context>")
    send(key, wrapped, replies(FERRY), says(BACK))
    send(key, wrapped, replies(FERRY), says(BACK), replies(BACK), TALK[0])
    assert find_notes(client, Conversation.objects.get()) == {3: [REWRITTEN]}


def test_forgotten_messages_have_a_note(client, key):
    send(key, TALK[0])
    send(key, *TALK[:3])
    kept = [says("We spoke about ferries."), *TALK[2:], TALK[0]]
    send(key, *kept)
    made = Conversation.objects.get()
    told = find_notes(client, made)
    assert told == {1: [FORGOT], 2: [FORGOT], 6: [HAS_FORGOTTEN]}
    send(key, *kept, replies(FERRY), says("And tomorrow?"))
    assert find_notes(client, made) == told


def test_previous_response_marks_nothing_as_forgotten(client, key):
    body = {"model": "ok", "input": FERRY}
    call = Call("/v1/responses", json.dumps(body).encode(), key=key)
    first = json.loads(async_to_sync(call.run)().answer)["id"]
    body = {"model": "ok", "input": BACK, "previous_response_id": first}
    async_to_sync(Call("/v1/responses", json.dumps(body).encode(), key=key).run)()
    made = Conversation.objects.get()
    assert find_notes(client, made) == {}
    assert "forgot" not in why(client, made)


def test_an_agent_is_named_where_it_was_started(client, key, monkeypatch):
    session = {"x_claude_code_session_id": "s-1"}
    send(key, TALK[0], headers=session)
    send(key, *TALK[:3], headers=session)
    for name in ("a-1", "a-2"):
        agent = {**session, "x_claude_code_agent_id": name}
        send(key, says(f"Look for the harbour of {name}."), headers=agent)
    send(key, says("Make a title for it."), headers=session)
    # What its id alone leads to it is no agent.
    send(key, says("Anew?"), replies("Anew?"), says("So?"), headers=session)
    main, one, other, title, anew = Conversation.objects.order_by("pk")
    assert find_notes(client, main) == {3: ["Agents beside this:"]}
    page = page_of(client, main)
    links = [f'/c/{each.uuid}/">“' in page for each in (one, other, title, anew)]
    assert links == [True, True, False, False]
    assert "An agent beside <a" in page_of(client, one)
    assert "A single call beside <a" in page_of(client, title)
    related = why(client, main)
    assert related.count("an agent beside this") == 2
    assert "a single call beside this" in related
    assert "· made beside this" in related
    monkeypatch.setattr(notes, "MAX_NAMED", 1)
    assert "and 1 more" in page_of(client, main)
    ClientConversation.objects.get(pk=one.pk).conversation.delete()
    assert find_notes(client, main) == {3: ["Agents beside this:"]}
    assert violations() == []


def test_site_conversation_needs_no_query_for_notes(
    conversation, django_assert_num_queries
):
    with django_assert_num_queries(0):
        assert notes.read_notes(conversation, 1, None) == {}
