"""Chat completions in observe mode: bytes in and out, and what is stored."""

import asyncio
import hashlib
import json

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from chatsite.contrib.endpoint import keys
from chatsite.contrib.endpoint.models import (
    BodyPiece,
    ClientConversation,
    ClientRequest,
)
from chatsite.contrib.endpoint.relay.reply_follower import FollowingStreamer
from chatsite.contrib.endpoint.store import request_store
from chatsite.turns.copying import copies
from chatsite.turns.models import Turn
from memory import library
from memory.models import Conversation, Message, ModelCall
from memory.view import rebuilding
from tests.chatsite.scenes import violations

from .asgi_client import Call

pytestmark = pytest.mark.django_db(transaction=True)
PATH = "/v1/chat/completions"


@pytest.fixture
def key(alice):
    return keys.create_api_key(alice, "llm")[1]


def body_of(*messages, **more):
    return json.dumps({"model": "ok", "messages": [*messages], **more}).encode()


def says(role, text, **more):
    return {"role": role, "content": text, **more}


async def complete(key, *messages, headers=None, **more):
    raw = body_of(*messages, **more)
    return await Call(PATH, raw, key=key, **(headers or {})).run()


def read(call):
    return json.loads(call.answer)["choices"][0]["message"]


@sync_to_async
def state():
    """Each conversation with its messages; nothing is wrong with any."""
    assert violations() == []
    for call in ModelCall.objects.all():
        assert rebuilding.verify_context(call), call.refs
    return [
        [f"{row.role[0]}: {row.text}" for row in each.messages.order_by("seq")]
        for each in Conversation.objects.order_by("pk")
    ]


async def test_bytes_go_out_and_come_back_unchanged(key, upstream):
    raw = b'{ "model":"ok",\n "messages" : [ {"role":"user","content":"H\\u00e9y"} ] }'
    call = await Call(PATH, raw, key=key).run()
    assert call.status == 200
    assert upstream.requests[-1].raw == raw
    assert call.answer == bytes(upstream.requests[-1].answered)
    assert (
        call.headers["x-windowpane-request-sha256"] == hashlib.sha256(raw).hexdigest()
    )
    assert upstream.requests[-1].headers["authorization"] == "Bearer sk-test-SECRET"
    assert await state() == [["u: Héy", "a: Reply to: Héy"]]


async def test_a_conversation_goes_on_where_the_client_goes_on(key, upstream):
    said = [says("system", "Be brief."), says("user", "Hello")]
    for text in ("And now?", "Thank you"):
        call = await complete(key, *said, stream=True)
        assert call.answer == bytes(upstream.requests[-1].answered)
        reply = Message.objects.filter(role="assistant").order_by("-pk")
        answer = await reply.values_list("text", flat=True).afirst()
        said += [says("assistant", answer), says("user", text)]
    assert call.headers["x-windowpane-lineage"] == "continued"
    await complete(key, *said)
    [rows] = await state()
    assert rows[::2] == ["u: Hello", "u: And now?", "u: Thank you"]
    assert rows[-1] == "a: Reply to: Thank you"


async def test_each_text_is_kept_once(key, upstream):
    text = "A sentence that no one else says, long enough to be kept once. " * 3
    tools = [{"type": "function", "function": {"name": "f", "description": "x" * 900}}]
    said = [says("user", text)]
    for more in ("Two", "Three"):
        await complete(key, *said, tools=tools)
        answer = await Message.objects.filter(role="assistant").alatest("pk")
        said += [says("assistant", answer.text), says("user", more)]
    await complete(key, *said, tools=tools)
    assert len(await state()) == 1
    pieces = [each async for each in BodyPiece.objects.values_list("text", flat=True)]
    assert not [each for each in pieces if text[:40] in each]
    assert sum("x" * 900 in each for each in pieces) == 1


async def test_a_tool_conversation_is_one_turn(key, upstream):
    call = {"id": "c1", "type": "function"}
    call["function"] = {"name": "add", "arguments": '{"a": 1}'}
    said = [says("user", "One and one?")]
    upstream.script(lambda x: x.send_json(asking(call)))
    first = await complete(key, *said)
    said += [read(first), says("tool", "2", tool_call_id="c1")]
    await complete(key, *said)
    [rows] = await state()
    assert [row[0] for row in rows] == ["u", "a", "t", "a"]
    turn = await Turn.objects.select_related("reply").aget()
    assert turn.state == "done"
    assert turn.reply.seq == 4


def asking(call):
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return {"choices": [choice], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}


async def test_history_without_served_replies_is_marked_as_imported(key, upstream):
    said = [says("user", "A"), says("assistant", "B"), says("assistant", "C")]
    said += [says("user", "D"), says("user", "E"), says("system", "F")]
    await complete(key, says("assistant", "Welcome"), *said)
    [rows] = await state()
    assert rows[:4] == ["a: Welcome", "u: A", "a: B", "a: C"]
    claimed = Message.objects.filter(role="assistant", imported_at__isnull=False)
    assert await claimed.acount() == 3


@pytest.mark.parametrize(
    ("mode", "turn", "error"),
    [
        ("length", "truncated", "length"),
        ("cut", "truncated", "no_finish_reason"),
        ("reset", "truncated", "no_finish_reason"),
        ("eof", "truncated", "no_finish_reason"),
        ("error-event", "failed", "unavailable"),
        ("bad-json", "truncated", "no_finish_reason"),
        ("html", "failed", "bad_response"),
        ("429-retry-after", "failed", "rate_limited"),
        ("401", "failed", "auth"),
        ("500", "failed", "unavailable"),
        ("400-context", "failed", "bad_request"),
    ],
)
async def test_answer_of_the_provider_is_passed_on(key, upstream, mode, turn, error):
    call = await complete(key, says("user", "Hi"), model=mode, stream=True)
    answered = bytes(upstream.requests[-1].answered)
    own = mode in ("html", "401")
    assert (call.answer != answered) is own
    if own:
        assert json.loads(call.answer)["error"]["message"]
        assert b"sk-test" not in call.answer
    if mode == "429-retry-after":
        assert call.headers["retry-after"]
    found = await Turn.objects.aget()
    assert (found.state, found.error) == (turn, error)
    await state()


async def test_a_client_that_hangs_up_keeps_what_it_was_sent(key, upstream):
    call = Call(
        PATH, body_of(says("user", "mode=ok-slow:200:0.05"), stream=True), key=key
    )
    task = asyncio.create_task(call.run())
    await call.until(b"word2")
    call.hang_up()
    await task
    assert await sync_to_async(upstream.wait_closed_early)()
    turn = await Turn.objects.select_related("reply").aget()
    assert (turn.state, turn.error) == ("stopped", "client_gone")
    assert turn.reply.text.startswith("word1 word2")
    await state()


async def test_turn_with_a_lost_lease_is_interrupted(key, upstream, monkeypatch):
    monkeypatch.setattr(FollowingStreamer, "_is_lease_over", lambda _: True)
    await complete(key, says("user", "mode=ok-slow:60:0.05"), stream=True)
    turn = await Turn.objects.aget()
    assert (turn.state, turn.error) == ("interrupted", "interrupted")
    await state()


async def test_the_same_request_beside_one_that_runs_is_a_branch(key, upstream):
    said = [says("user", "Hello")]
    said += [read(await complete(key, *said))]
    said += [says("user", "mode=ok-slow:40:0.05")]
    first = Call(PATH, body_of(*said, stream=True), key=key)
    task = asyncio.create_task(first.run())
    await first.until(b"word2")
    again = await complete(key, *said)
    assert (again.status, again.headers["x-windowpane-lineage"]) == (200, "branch")
    await task
    assert [len(rows) for rows in await state()] == [4, 4]


async def test_a_retry_in_the_middle_leaves_what_came_after(key):
    said = []
    for text in ("One", "Two", "Three"):
        said += [says("user", text)]
        said += [read(await complete(key, *said, model="any"))]
    headers = {"x_stainless_retry_count": "1"}
    again = await complete(key, *said[:3], model="any", headers=headers)
    assert again.headers["x-windowpane-lineage"] == "branch"
    whole, branch = await state()
    assert (len(whole), len(branch)) == (6, 4)
    assert not await Message.objects.filter(superseded_at__isnull=False).aexists()
    more = await complete(key, *said, says("user", "Four"), model="any")
    assert more.headers["x-windowpane-lineage"] == "continued"


async def test_demo_model_answers_without_a_provider(key):
    call = await complete(key, says("user", "Where is Kyoto?"), model="any")
    assert read(call)["content"]
    said = [says("user", "Where is Kyoto?"), read(call), says("user", "Thanks")]
    streamed = await complete(key, *said, stream=True)
    assert streamed.answer.endswith(b"data: [DONE]\n\n")
    assert len(await state()) == 1


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"", 400),
        (b"<html>", 400),
        (b'{"model":"ok"}', 400),
        (b'{"model":"ok","messages":[]}', 400),
        (b'{"model":7,"messages":[{"role":"user","content":"x"}]}', 400),
        (b" " * (32 * 1024 * 1024 + 1), 413),
    ],
)
async def test_invalid_request_stores_nothing(key, upstream, raw, status):
    call = await Call(PATH, raw, key=key, method="POST").run()
    assert call.status == status
    assert json.loads(call.answer)["error"]["message"].endswith(".")
    assert upstream.requests == []
    assert await state() == []


async def test_equal_texts_of_two_users_stay_apart(alice, bob, upstream):
    for owner in (alice, bob):
        _, key = await sync_to_async(keys.create_api_key)(owner, "llm")
        await complete(key, says("user", "Hello"))
        said = [says("user", "Hello"), says("assistant", "Reply to: Hello")]
        await complete(key, *said, says("user", "Again"))
    assert [len(rows) for rows in await state()] == [4, 4]
    assert await ClientRequest.objects.acount() == 4


async def test_limits_of_the_site_hold(key, upstream, settings):
    settings.MESSAGES_PER_MINUTE = 1
    calls = [await complete(key, says("user", f"Hi {n}")) for n in range(7)]
    assert {call.status for call in calls} == {200, 429}
    assert calls[-1].headers["retry-after"]
    assert json.loads(calls[-1].answer)["error"]["type"] == "rate_limit_error"
    assert len(await state()) == len(upstream.requests)


async def test_second_branch_leaves_the_first_unchanged(key, upstream):
    said = [says("user", "Hello"), says("assistant", "Reply to: Hello")]
    await complete(key, said[0])
    await complete(key, *said, says("user", "Left"))
    call = await complete(key, *said, says("user", "Right"))
    assert call.headers["x-windowpane-lineage"] == "branch"
    first, second = await state()
    assert first[-1] == "a: Reply to: Left"
    assert second[2:] == ["u: Right", "a: Reply to: Right"]


async def test_a_long_conversation_is_branched_in_batches(key, upstream, monkeypatch):
    monkeypatch.setattr(request_store, "MAX_COPIED", 3)
    said = [says("user", "Hello"), says("assistant", "Reply to: Hello")]
    await complete(key, said[0])
    said += [says("user", "Left"), says("assistant", "Reply to: Left")]
    await complete(key, *said[:3])
    await complete(key, *said, says("user", "Up"))
    call = await complete(key, *said, says("user", "Down"))
    assert call.headers["x-windowpane-lineage"] == "branch"
    first, second = await state()
    assert first[-1] == "a: Reply to: Up"
    assert second == [*first[:4], "u: Down", "a: Reply to: Down"]
    made = await Conversation.objects.alatest("pk")
    assert (made.deleted_at, made.temporary_until) == (None, None)


async def test_unfinished_copy_is_hidden_and_purged(alice, key, upstream, monkeypatch):
    monkeypatch.setattr(request_store, "MAX_COPIED", 1)
    said = [says("user", "Hello"), says("assistant", "Reply to: Hello")]
    await complete(key, said[0])
    await complete(key, *said, says("user", "Left"))
    with monkeypatch.context() as patch:
        patch.setattr(copies, "write_turns", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            await complete(key, *said, says("user", "Right"))
    assert await sync_to_async(library.list_own(alice).count)() == 1
    assert await sync_to_async(library.deleted_lately(alice).count)() == 0
    await Conversation.objects.exclude(temporary_until=None).aupdate(
        temporary_until=timezone.now()
    )
    assert await sync_to_async(library.purge_deleted)() == 1


async def test_a_conversation_keeps_the_client_id_that_came_first(key, upstream):
    said = [says("user", "Hello"), says("assistant", "Reply to: Hello")]
    one, two = ({"x_openwebui_chat_id": name} for name in ("one", "two"))
    await complete(key, said[0], headers=one)
    await complete(key, says("user", "Another question"), headers=two)
    call = await complete(key, *said, says("user", "And now?"), headers=two)
    assert call.headers["x-windowpane-lineage"] == "continued"
    rows = ClientConversation.objects.order_by("pk").values_list("client", flat=True)
    names = [name.partition(":")[2] async for name in rows]
    assert names == ["one", "two"]


async def test_a_branch_goes_on_in_another_writing_when_its_parent_is_erased(
    key, upstream
):
    said = [says("user", "Hello")]
    for text in ("And now?", "Up"):
        await complete(key, *said)
        said += [says("assistant", f"Reply to: {said[-1]['content']}")]
        said += [says("user", text)]
    await complete(key, *said)
    said[-1] = says("user", "Down")
    await complete(key, *said)
    parent = await Conversation.objects.order_by("pk").afirst()
    await sync_to_async(library.erase_conversation)(parent)
    said += [says("assistant", "Reply to: Down"), says("user", "Thank you")]
    parts = [[{"type": "text", "text": each["content"]}] for each in said]
    said = [{**each, "content": part} for each, part in zip(said, parts, strict=True)]
    call = await complete(key, *said)
    assert call.headers["x-windowpane-lineage"] == "continued"
    rows = BodyPiece.objects.filter(text__contains="[").order_by("message__seq")
    found = rows.values_list("message__seq", flat=True)
    assert [seq async for seq in found] == [*range(1, 8)]
    assert len((await state())[0]) == 8
