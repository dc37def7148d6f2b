"""Anthropic's Messages API in observe mode."""

import asyncio
import json
import threading

import pytest
from asgiref.sync import sync_to_async

from chatsite.contrib.endpoint import keys, request_handling
from chatsite.contrib.endpoint.models import ClientConversation
from chatsite.turns.models import Turn
from memory.models import Conversation, ModelCall
from memory.view import rebuilding
from tests.chatsite.scenes import violations
from tests.patience import PATIENCE

from .asgi_client import Call, ask

pytestmark = pytest.mark.django_db(transaction=True)
PATH = "/v1/messages"
CALL = {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}}
EVENTS = [
    {"type": "message_start", "message": {"usage": {"input_tokens": 9}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking"}},
    {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "thinking_delta", "thinking": "Hmm."},
    },
    {
        "type": "content_block_delta",
        "index": 1,
        "delta": {"type": "text_delta", "text": "Adding."},
    },
    {
        "type": "content_block_start",
        "index": 2,
        "content_block": {**CALL, "input": {}},
    },
    {
        "type": "content_block_delta",
        "index": 2,
        "delta": {"type": "input_json_delta", "partial_json": '{"a": 1}'},
    },
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use"},
        "usage": {"output_tokens": 5},
    },
    {"type": "message_stop"},
]


@pytest.fixture
def key(alice):
    return keys.create_api_key(alice, "Claude Code")[1]


@pytest.fixture
def claude(upstream, settings):
    settings.ANTHROPIC_BASE_URL = upstream.url.removesuffix("/v1")
    settings.ANTHROPIC_API_KEY = "sk-ant-SECRET"
    return upstream


def tell_events(x):
    for event in EVENTS:
        x.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
    x.close()


def tell_whole(x):
    usage = {"input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": 2}
    content = [{"type": "text", "text": "Two."}]
    values = {"type": "message", "content": content, "stop_reason": "end_turn"}
    x.send_json({**values, "usage": usage})


def send(key, *messages, headers=None, **more):
    body = {"model": "claude", "system": "Be brief.", "messages": messages, **more}
    headers = {"x_api_key": key, "anthropic_beta": "tools-2030", **(headers or {})}
    return Call(PATH, json.dumps(body).encode(), **headers)


async def test_a_conversation_with_a_tool(key, claude):
    claude.script(tell_events, tell_whole)
    said = [{"role": "user", "content": "One and one?"}]
    first = await send(key, *said, stream=True, max_tokens=9).run()
    sent = claude.requests[-1]
    assert first.answer == bytes(sent.answered)
    assert sent.raw == first.body
    assert sent.path == PATH
    assert sent.headers["x-api-key"] == "sk-ant-SECRET"
    assert sent.headers["anthropic-beta"] == "tools-2030"
    thinking = {"type": "thinking", "thinking": "Hmm.", "signature": "s"}
    text = {"type": "text", "text": "Adding."}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "2"}
    said += [
        {"role": "assistant", "content": [thinking, text, CALL]},
        {"role": "user", "content": [result]},
    ]
    second = await send(key, *said).run()
    assert second.headers["x-windowpane-lineage"] == "continued"
    assert second.answer == bytes(claude.requests[-1].answered)
    conversation = await Conversation.objects.aget()
    assert conversation.system_prompt == "Be brief."
    rows = conversation.messages.order_by("seq").values_list("role", "text")
    assert [row async for row in rows] == [
        ("user", "One and one?"),
        ("assistant", "Adding."),
        ("tool", "2"),
        ("assistant", "Two."),
    ]
    turn = await Turn.objects.select_related("call").aget()
    assert (turn.state, turn.call.tokens_input, turn.call.tokens_cached) == (
        "done",
        7,
        4,
    )
    assert await sync_to_async(violations)() == []
    calls = [call async for call in ModelCall.objects.select_related("conversation")]
    assert all([await sync_to_async(rebuilding.verify_context)(call) for call in calls])


async def test_a_subagent_is_a_conversation_of_its_own_with_a_link(key, claude):
    claude.script(*[tell_whole] * 4)
    session = {"x_claude_code_session_id": "s-1"}
    agent = {**session, "x_claude_code_agent_id": "a-1"}
    told = [
        {"role": "assistant", "content": "Two."},
        {"role": "user", "content": "So?"},
    ]
    kinds = []
    for text, headers in (("Fix it.", session), ("Look for the error.", agent)):
        for more in ([], told):
            said = [{"role": "user", "content": text}, *more]
            call = await send(key, *said, headers=headers).run()
            kinds.append(call.headers["x-windowpane-lineage"])
    assert kinds == ["single", "continued"] * 2
    rows = ClientConversation.objects.order_by("pk")
    main, sub = [row async for row in rows]
    assert (main.linked_id, sub.linked_id) == (None, main.pk)
    assert (main.length, sub.length) == (4, 4)
    assert await sync_to_async(violations)() == []


async def test_errors_have_the_form_of_the_api(key, claude):
    status, _, body = await ask(PATH, b"{}", key="wp_wrong")
    assert (status, body["type"]) == (401, "error")
    assert body["error"]["type"] == "authentication_error"
    status, _, body = await ask(PATH, b"[]", key=key)
    assert (status, body["error"]["type"]) == (400, "invalid_request_error")


async def test_tokens_are_counted_by_the_provider_and_nothing_is_kept(key, claude):
    claude.script(lambda x: x.send_json({"input_tokens": 21}))
    said = [{"role": "user", "content": "How long is this?"}]
    raw = json.dumps({"model": "claude", "messages": said}).encode()
    status, _, body = await ask(f"{PATH}/count_tokens", raw, key=key)
    assert (status, body) == (200, {"input_tokens": 21})
    assert not await Conversation.objects.aexists()


async def test_token_counts_of_one_user_leave_slots_to_others(
    key, bob, claude, monkeypatch
):
    """Token counts take no slot of replies."""
    monkeypatch.setattr(request_handling, "MAX_USER_RUNNING", 2)
    came, go_on = threading.Semaphore(0), threading.Event()

    def wait_and_count(x):
        came.release()
        go_on.wait(10 * PATIENCE)
        x.send_json({"input_tokens": 1})

    claude.script(*[wait_and_count] * 3)
    other = await sync_to_async(keys.create_api_key)(bob, "his")
    said = [{"role": "user", "content": "How long is this?"}]
    raw = json.dumps({"model": "claude", "messages": said}).encode()

    def count(key):
        return asyncio.create_task(Call(f"{PATH}/count_tokens", raw, key=key).run())

    running = [count(key), count(key)]
    for _ in running:
        assert await asyncio.to_thread(came.acquire, timeout=10 * PATIENCE)
    refused = await count(key)
    assert (refused.status, refused.headers.get("retry-after")) == (429, "1")
    running.append(count(other[1]))
    assert await asyncio.to_thread(came.acquire, timeout=10 * PATIENCE)
    go_on.set()
    done = await asyncio.gather(*running)
    assert [call.status for call in done] == [200] * 3
    assert not request_handling._running


async def test_demo_model_answers_without_a_provider(key):
    said = {"role": "user", "content": [{"type": "text", "text": "Hello"}]}
    whole = json.loads((await send(key, said).run()).answer)
    assert whole["content"][0]["text"]
    stream = await send(key, said, stream=True).run()
    assert stream.answer.startswith(b"event: message_start\n")
    assert stream.answer.endswith(b'data: {"type": "message_stop"}\n\n')
    assert await Turn.objects.filter(state="done").acount() == 2
