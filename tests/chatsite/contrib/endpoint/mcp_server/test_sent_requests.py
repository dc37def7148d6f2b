"""The request of a reply, with its hash, and the messages that were left out."""

import hashlib
import json

import pytest
from asgiref.sync import async_to_sync
from django.utils import timezone

from chatsite.contrib.endpoint import keys
from chatsite.contrib.endpoint.mcp_server import sent_requests
from memory import actions, transcript
from memory.models import ModelCall
from memory.ranges import merge_ranges
from memory.view.places import count_sent
from tests.chatsite.contrib.endpoint.asgi_client import Call, send
from tests.memory.scenes import compact, say, talk

from .reading import connected, use

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def talked(alice):
    """A long conversation whose last reply was written with summaries."""
    made = transcript.create_conversation(alice, title="Long", preset="langgraph")
    talk(made, 12)
    compact(made, "A summary of what was said.")
    say(made, "And now?")
    return made


def last_call(conversation):
    return conversation.model_calls.filter(purpose="reply").order_by("-pk").first()


def ask(key, tool, **given):
    """All pieces of an answer."""

    async def read():
        pieces = []
        async with connected(key) as client:
            more = given
            while more:
                answer = await use(client, tool, **more)
                if isinstance(answer, str):
                    return answer
                pieces.append(answer)
                more = answer.get("next")
        return pieces

    return async_to_sync(read)()


def test_the_messages_of_the_site_are_proved_by_their_hash(reader, talked, monkeypatch):
    monkeypatch.setattr(sent_requests, "MAX_CHARS", 100)
    call = last_call(talked)
    given = {"conversation": str(talked.uuid), "reply": call.message.seq}
    pieces = ask(reader, "what_the_model_saw", **given)
    text = "".join(piece["text"] for piece in pieces)
    assert len(pieces) > 2
    assert hashlib.sha256(text.encode()).hexdigest() == call.sha256
    assert all(each["is_proved"] and each["is_text_of_hash"] for each in pieces)
    assert "A summary of what was said." in text
    seq = call.message.seq
    page = f"http://testserver/c/{talked.uuid}/?at={seq}#message-{seq}"
    assert pieces[0]["address"] == page
    assert pieces[0]["sha256"] == call.sha256


def test_body_of_a_client_is_shown_byte_for_byte(alice, upstream):
    _, key = keys.create_api_key(alice, "both", scopes=["send", "read"])
    said = [{"role": "user", "content": "Grüße 🙂"}]
    headers = send(key, *said, temperature=0.25)
    call = ModelCall.objects.get()
    [piece] = ask(
        key,
        "what_the_model_saw",
        conversation=headers["x-windowpane-conversation"],
        reply=call.message.seq,
    )
    body = {"model": "ok", "messages": said, "temperature": 0.25}
    assert json.loads(piece["text"]) == body
    digest = hashlib.sha256(piece["text"].encode()).hexdigest()
    assert digest == piece["sha256"] == headers["x-windowpane-request-sha256"]
    assert piece["address"] == headers["x-windowpane-view"]


def test_deleted_message_is_neither_shown_nor_proved(reader, talked):
    call = last_call(talked)
    actions.delete_message(talked, call.message.seq - 1)
    given = {"conversation": str(talked.uuid), "reply": call.message.seq}
    [piece] = ask(reader, "what_the_model_saw", **given)
    assert "And now?" not in piece["text"]
    assert not piece["is_proved"]
    assert not piece["is_text_of_hash"]


def test_left_out_messages_have_a_reason(reader, talked, monkeypatch):
    call = last_call(talked)
    hidden = talked.messages.filter(seq__lt=call.message.seq - 1).last()
    given = {"conversation": str(talked.uuid), "reply": call.message.seq}
    [answer] = ask(reader, "what_was_left_out", **given)
    summary = talked.summaries.get()
    first = answer["left_out"][0]
    assert (first["first"], first["last"]) == (summary.first_seq, summary.last_seq)
    assert (first["why"], first["version"]) == ("summarised", summary.version)
    counts = count_sent(call)
    assert sum(each["messages"] for each in answer["left_out"]) == (
        counts.get("summary", 0) + counts.get("unsent", 0) + counts.get("left", 0)
    )
    talked.messages.filter(pk=hidden.pk).update(excluded_at=timezone.now())
    call = say(talked, "Once more") and last_call(talked)
    monkeypatch.setattr(sent_requests, "MAX_STRETCHES", 1)
    given["reply"] = call.message.seq
    pieces = ask(reader, "what_was_left_out", **given)
    found = [each for piece in pieces for each in piece["left_out"]]
    assert [each["why"] for each in found] == ["summarised", "hidden from the model"]
    assert found[1]["first"] == found[1]["last"] == hidden.seq


def test_messages_that_a_client_did_not_send_are_listed(alice, upstream):
    _, key = keys.create_api_key(alice, "both", scopes=["send", "read"])
    said = []
    for text in ("One", "Two", "Three"):
        said.append({"role": "user", "content": text})
        headers = send(key, *said)
        said.append({"role": "assistant", "content": f"Reply to: {text}"})
    headers = send(key, *said[2:], {"role": "user", "content": "Four"})
    call = ModelCall.objects.order_by("-pk").first()
    [answer] = ask(
        key,
        "what_was_left_out",
        conversation=headers["x-windowpane-conversation"],
        reply=call.message.seq,
    )
    [stretch] = answer["left_out"]
    assert (stretch["messages"], stretch["why"]) == (2, "not sent by the client")


def test_messages_that_the_provider_holds_are_listed(alice, upstream):
    _, key = keys.create_api_key(alice, "both", scopes=["send", "read"])
    call, previous = None, {}
    for text in ("One", "Two"):
        raw = json.dumps({"model": "ok", "input": text, **previous}).encode()
        call = Call("/v1/responses", raw, key=key)
        async_to_sync(call.run)()
        previous = {"previous_response_id": json.loads(call.answer)["id"]}
    sent = ModelCall.objects.order_by("-pk").first()
    named = call.headers["x-windowpane-conversation"]
    given = {"conversation": named, "reply": sent.message.seq}
    [answer] = ask(key, "what_was_left_out", **given)
    [stretch] = answer["left_out"]
    assert (stretch["messages"], stretch["why"]) == (2, "held by the provider")
    assert count_sent(sent) == {"newest": 1, "held": 2}


@pytest.mark.parametrize("tool", ["what_the_model_saw", "what_was_left_out"])
def test_number_that_is_no_reply_is_refused(reader, talked, bob, tool):
    given = {"conversation": str(talked.uuid)}
    for number in (1, 999_999_999):
        answer = ask(reader, tool, **given, reply=number)
        assert answer == f"No request is known for a reply #{number}."
    _, other = keys.create_api_key(bob, "x", scopes=["read"])
    answer = ask(other, tool, **given, reply=last_call(talked).message.seq)
    assert answer == "There is no such conversation."


def test_a_stretch_ends_where_the_reason_does():
    find = sent_requests._make_finder([(1, 3, "a"), (7, 9, "b")])
    assert [find(seq) for seq in (0, 1, 3, 4, 7, 9, 10)] == [
        *(None, "a", "a", None, "b", "b", None)
    ]
    assert merge_ranges([[5, 9], [1, 3], [7, 8], [9, 12]]) == [[1, 3], [5, 12]]
    assert merge_ranges([[4, 6], [1, 3]]) == [[1, 6]]
