"""The hash of the body of a request: as it left, as it is rebuilt, and as it is said
before it leaves. The fake provider hashes what it receives.
"""

import hashlib
import json

import pytest
from asgiref.sync import async_to_sync

from chatsite.llm.provider_file import ModelProvider
from chatsite.turns import requests, runner
from memory import actions, transcript
from memory.engine.compose import digest_body
from memory.integrity import audit
from memory.models import Conversation, ModelCall
from memory.view import rebuilding
from tests.fakes import own_tools
from tests.fakes.calling import calling
from tests.fakes.upstream import answer_status
from tests.memory.scenes import summarise

from ..scenes import signed_in, submit, talk_in_turns, url

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def chat(conversation, upstream, settings):
    """Four messages, of which a summary covers two; one of these is pinned."""
    settings.TOOLS = own_tools.PATHS
    summarise(conversation, 1, 2, text="Lance was greeted. 你好 \U0001f600")
    actions.pin_message(conversation, 1)
    rows = Conversation.objects.filter(pk=conversation.pk)
    rows.update(temperature=0.5, tools=own_tools.NAMES, model="ok")
    return rows.get()


def say(chat, text):
    """The requests that a message leads to, oldest first."""
    before = {*chat.model_calls.values_list("pk", flat=True)}
    submit(chat, text)
    async_to_sync(runner._drive_turns)(chat.pk)
    chat.refresh_from_db()
    return list(chat.model_calls.exclude(pk__in=before).order_by("pk"))


def digests(upstream):
    return [hashlib.sha256(each.raw).hexdigest() for each in upstream.calls]


def read_json(chat, **query):
    return signed_in(chat.owner).get(url("context-json", chat), query).json()


def rebuild_from(shown):
    """The hash, as a client of context.json computes it."""
    body = {**shown["body_fields"], "model": shown["model"]}
    body |= {"messages": shown["messages"]} | (
        {"tools": shown["tools"]} if shown["tools"] else {}
    )
    ordered = {name: body[name] for name in sorted(body)}
    text = json.dumps(ordered, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def test_hash_is_of_the_bytes_that_left(chat, upstream):
    upstream.script(calling(("look_up", {"city": "Oslo", "a": 1})), "ok")
    calls = say(chat, "How warm is it?")
    assert [call.body_sha256 for call in calls] == digests(upstream)
    assert len(calls) == 2
    assert all(map(rebuilding.verify_context, calls))
    for call in calls:
        shown = read_json(chat, reply=call.message.seq)
        assert shown["body_sha256"] == call.body_sha256 == rebuild_from(shown)
        assert shown["body_fields"]["temperature"] == 0.5
        assert shown["body_unknown"] == ""
    page = signed_in(chat.owner).get(url("context", chat), {"reply": 8})
    assert calls[-1].body_sha256 in page.content.decode()


def test_body_that_would_leave_now_is_the_one_that_leaves(chat, upstream):
    for text in ("And the train?", "你好, and back?"):
        shown = requests.next_turn(chat, draft=text)
        (call,) = say(chat, text)
        assert digest_body(requests.make_body(shown)) == call.body_sha256
    turn = submit(chat, "Wait").turn
    shown = read_json(chat)
    assert shown["messages"][-1]["content"] == "Wait"
    async_to_sync(runner._drive_turns)(chat.pk)
    assert digests(upstream)[-1] == shown["body_sha256"] == rebuild_from(shown)
    turn.refresh_from_db()
    assert turn.call.body_sha256 == shown["body_sha256"]


def test_hash_is_of_the_body_that_was_answered(chat, upstream):
    """A refused field is left out, and a server that fails is asked again."""
    refused = "Unrecognized request argument supplied: stream_options"
    upstream.script(answer_status(400, refused, "unknown_parameter"), "500", "ok")
    call = say(chat, "Now")[-1]
    assert call.body_sha256 == digests(upstream)[-1]
    assert "stream_options" not in call.body_fields
    assert rebuilding.verify_context(call)


def test_other_fields_are_no_proof(chat):
    (call,) = say(chat, "Now")
    rows = ModelCall.objects.filter(pk=call.pk)
    rows.update(body_fields={"stream": True})
    assert [each.code for each in audit.check_memory()] == ["R8.hash"]
    rows.update(body_fields=call.body_fields)
    assert not list(audit.check_memory())


def test_demo_model_is_given_the_body_that_a_server_would_receive(alice):
    made = transcript.create_conversation(alice, tools=["calculate"], model="demo")
    calls = say(made, 'use calculate {"expression": "1+1"}')
    assert len(calls) == 2
    for call in calls:
        assert rebuilding.verify_context(call)
        shown = read_json(made, reply=call.message.seq)
        assert shown["body_sha256"] == rebuild_from(shown)
    shown = read_json(made)
    assert shown["body_sha256"] == rebuild_from(shown)


def test_hash_is_null_with_a_reason(alice, settings):
    made = transcript.create_conversation(alice)
    talk_in_turns(made, "One")
    shown = read_json(made, reply=2)
    assert (shown["body_sha256"], shown["body_unknown"]) == (None, "not_recorded")
    Conversation.objects.filter(pk=made.pk).update(model="gone")
    settings.PROVIDERS = [ModelProvider.model_construct(models=[])]
    shown = read_json(made)
    assert (shown["body_sha256"], shown["body_unknown"]) == (None, "model_denied")
