"""Keys in bound mode: long conversations stay within a small window."""

import asyncio
import hashlib
import json
from itertools import pairwise

import pytest
from asgiref.sync import sync_to_async

from bench.endpoint.bounded import PATHS
from bench.endpoint.long_talk import LongTalk
from bench.endpoint.strict import TOOL_WORD, StrictUpstream, read_messages
from chatsite.contrib.endpoint import keys
from chatsite.contrib.endpoint.apis import OPENAI_RESPONSES
from chatsite.contrib.endpoint.bounding.message_selection import (
    MessageSelector,
    list_spans,
)
from chatsite.contrib.endpoint.store.parsed_request import read_client_request
from chatsite.turns import runner
from memory import actions
from memory.models import Conversation, ModelCall, Summary
from memory.view import rebuilding
from tests.chatsite.contrib.endpoint.asgi_client import Call
from tests.chatsite.scenes import violations
from tests.fakes.upstream import SUMMARY_MARK, answer_in_wire

pytestmark = pytest.mark.django_db(transaction=True)
WINDOW, TURNS = 2_500, 15


@pytest.fixture
def key(alice):
    return keys.create_api_key(alice, "agent", mode="bound")[1]


@pytest.fixture
def provider(settings):
    with StrictUpstream(WINDOW) as server:
        settings.OPENAI_BASE_URL = server.url
        settings.ANTHROPIC_BASE_URL = server.url.removesuffix("/v1")
        settings.CHAT_MODEL = settings.SUMMARY_MODEL = "ok"
        settings.CONTEXT_WINDOW = WINDOW
        settings.MESSAGES_PER_MINUTE = settings.SUMMARIES_PER_MINUTE = 1_000
        yield server


async def play(talk, key):
    """The answers of the site, one for each body."""
    calls = []
    for body in talk.play():
        calls.append(await ask(key, body, PATHS[talk.wire]))
        talk.take(calls[-1].answer)
    return calls


async def ask(key, body, path=PATHS["chat"], **headers):
    call = await Call(path, body, key=key, **headers).run()
    assert call.status == 200, call.answer
    while tasks := [task for task in runner._tasks if not task.done()]:
        await asyncio.gather(*tasks)
    return call


def sent_by(provider):
    """The bodies of the client, without the requests for summaries."""
    mark = SUMMARY_MARK.encode()
    return [each.raw for each in provider.requests if mark not in each.raw]


@sync_to_async
def check_all_rebuilt(raws):
    assert violations() == []
    calls = ModelCall.objects.filter(purpose=ModelCall.Purpose.REPLY).order_by("pk")
    assert [call.sha256 for call in calls] == [
        hashlib.sha256(raw).hexdigest() for raw in raws
    ]
    assert all(rebuilding.verify_context(call) for call in calls)


def without_messages(raw):
    return {
        name: value
        for name, value in json.loads(raw).items()
        if name not in ("messages", "input")
    }


@pytest.mark.parametrize("wire", PATHS)
async def test_long_conversation_stays_within_the_window(wire, key, provider):
    talk = LongTalk(wire, TURNS)
    calls = await play(talk, key)
    assert (provider.too_long, provider.orphans, provider.changed) == (0, 0, 0)
    raws = sent_by(provider)
    await check_all_rebuilt(raws)
    assert await Conversation.objects.acount() == 1
    told = calls[-1].headers
    assert told["x-windowpane-mode"] == "bound"
    assert told["x-windowpane-context"].startswith("bounded; before=")
    assert without_messages(raws[-1]) == without_messages(talk.bodies[-1])
    # Between two compactions a body only grows.
    said = [read_messages(raw) for raw in raws]
    cuts = [not after.startswith(before[:-2]) for before, after in pairwise(said)]
    assert 0 < sum(cuts) <= await Summary.objects.acount()


async def test_a_long_history_fits_from_the_first_request_on(key, provider):
    talk = LongTalk("chat", 20)
    for _ in talk.play():
        talk.said.append({"role": "assistant", "content": "Copper and winter. " * 8})
    provider.window, full = WINDOW, talk.bodies[-1]
    call = await ask(key, full)
    assert call.headers["x-windowpane-lineage"] == "new"
    assert "bounded; before=39" in call.headers["x-windowpane-context"]
    assert provider.too_long == 0
    assert await Summary.objects.aexists()
    await check_all_rebuilt(sent_by(provider))


async def test_a_long_turn_of_tools_keeps_its_question(key, provider):
    said = [{"role": "user", "content": f"What is in the files? {TOOL_WORD}."}]
    for number in range(16):
        body = {"model": "strict", "messages": said}
        call = await ask(key, json.dumps(body).encode())
        said.append(json.loads(call.answer)["choices"][0]["message"])
        [asked] = said[-1]["tool_calls"]
        result = f"File {number}: {'copper river ' * 40} {TOOL_WORD}."
        said.append({"role": "tool", "tool_call_id": asked["id"], "content": result})
    assert (provider.too_long, provider.orphans) == (0, 0)
    raws = sent_by(provider)
    await check_all_rebuilt(raws)
    last = json.loads(raws[-1])["messages"]
    assert "<summary" in last[0]["content"]
    assert last[1] == said[0]
    assert last[-1] == said[-3]
    left_out = [each async for each in ModelCall.objects.values_list("refs", flat=True)]
    assert not any(refs.get("left_out") for refs in left_out)


async def test_selection_leaves_out_no_more_than_needed(
    key, provider, settings, monkeypatch
):
    # Nothing is summarised in time, so the oldest turns are left out.
    settings.COMPACTION_WAIT_SECONDS = 0
    made = []
    make = MessageSelector._make

    def note(*given, **more):
        made.append(make(*given, **more))
        return made[-1]

    monkeypatch.setattr(MessageSelector, "_make", note)
    talk = LongTalk("messages", 20)
    for _ in talk.play():
        reply = [{"type": "text", "text": "Copper and winter. " * 8}]
        talk.said.append({"role": "assistant", "content": reply})
    await ask(key, talk.bodies[-1], PATHS["messages"])
    assert (provider.too_long, provider.orphans) == (0, 0)
    assert [each.is_too_long for each in made[-2:]] == [True, False]
    # A turn more would not have fitted.
    fewer = made[-1]
    turn = 2 * (fewer.tokens // fewer.after)
    assert fewer.tokens + turn > fewer.limit
    await check_all_rebuilt(sent_by(provider))


def make_tool_turn(rounds):
    """A question, and calls of tools; a reminder beside the first result."""
    said = [{"role": "user", "content": "What is in the files?"}]
    for number in range(rounds):
        use = {"type": "tool_use", "id": f"toolu_{number}", "name": "look_up"}
        said.append({"role": "assistant", "content": [{**use, "input": {}}]})
        result = {"type": "tool_result", "tool_use_id": use["id"]}
        content = [{**result, "content": "copper river " * 60}]
        if not number:
            content.append({"type": "text", "text": "Be brief."})
        said.append({"role": "user", "content": content})
    return said


async def test_the_question_is_sent_without_results_beside_it(key, provider, settings):
    settings.COMPACTION_WAIT_SECONDS = 0
    provider.window = 2 * WINDOW
    body = {"model": "anthropic", "max_tokens": 100, "messages": make_tool_turn(20)}
    await ask(key, json.dumps(body).encode(), PATHS["messages"])
    assert (provider.too_long, provider.orphans) == (0, 0)
    sent = json.loads(sent_by(provider)[-1])["messages"]
    assert sent[0]["content"] == [{"type": "text", "text": "Be brief."}]
    assert sent[1]["content"][0]["type"] == "tool_use"


async def test_refused_long_body_is_sent_shorter_once(key, provider):
    talk = LongTalk("chat", 8)
    await play(talk, key)
    provider.window = 900
    talk.turns = 1
    [call] = await play(talk, key)
    assert "tries=2" in call.headers["x-windowpane-context"]
    assert provider.too_long == 1
    errors = [each async for each in ModelCall.objects.values_list("error", flat=True)]
    assert errors.count("context_length") == 1
    await check_all_rebuilt(sent_by(provider))


async def test_header_sets_the_mode_of_one_request(key, provider):
    talk = LongTalk("chat", 12)
    await play(talk, key)
    provider.window = 100_000
    call = await ask(key, talk.bodies[-1], x_windowpane_mode="observe")
    assert provider.requests[-1].raw == talk.bodies[-1]
    assert call.headers["x-windowpane-mode"] == "observe"
    assert call.headers["x-windowpane-context"].startswith("exact")
    call = await Call(PATHS["chat"], b"{}", key=key, x_windowpane_mode="half").run()
    assert call.status == 400


async def test_counted_is_what_would_be_sent(key, provider):
    talk = LongTalk("messages", 12)
    await play(talk, key)
    provider.script(lambda x: x.send_json({"input_tokens": 7}))
    before = await ModelCall.objects.acount()
    call = await ask(key, talk.bodies[-1], "/v1/messages/count_tokens")
    assert call.headers["x-windowpane-context"].startswith("bounded")
    assert len(provider.requests[-1].raw) < len(talk.bodies[-1])
    assert await ModelCall.objects.acount() == before


async def test_rebuilt_bodies_lack_deleted_messages(key, provider):
    talk = LongTalk("chat", 12)
    await play(talk, key)
    conversation = await Conversation.objects.aget()
    await sync_to_async(actions.delete_message)(conversation, 1)
    words = talk.said[0]["content"][:40]
    calls = ModelCall.objects.filter(purpose=ModelCall.Purpose.REPLY)
    for call in [each async for each in calls.select_related("conversation")]:
        built = await sync_to_async(rebuilding.rebuild_context)(call)
        assert words not in json.dumps(built.wire)
    assert await sync_to_async(violations)() == []


def think(number):
    return {"type": "reasoning", "id": f"rs_{number}", "summary": []}


def test_items_go_with_the_message_that_they_belong_to():
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c", "output": "2"}
    said = {"type": "message", "role": "assistant", "content": "Two."}
    items = [{"role": "system", "content": "Be brief."}, {"role": "user"}]
    items += [think(1), call, result, think(2), said, think(3), {"role": "user"}]
    body = {"model": "m", "input": [*items, think(4)]}
    asked = read_client_request(OPENAI_RESPONSES, {}, json.dumps(body).encode())
    spans = list_spans(asked)
    assert spans == [[1], [2, 3], [4], [5, 6, 7], [8, 9]]


async def test_body_with_a_previous_response_is_refused(key, provider):
    talk = LongTalk("responses", 1)
    [call] = await play(talk, key)
    assert call.headers["x-windowpane-mode"] == "bound"
    named = json.loads(call.answer)["id"]
    body = {"model": "strict", "previous_response_id": named, "input": "And then?"}
    sent, raw = len(provider.requests), json.dumps(body).encode()
    call = await Call(PATHS["responses"], raw, key=key).run()
    assert (call.status, call.headers["x-windowpane-held"]) == (400, "refused")
    assert len(provider.requests) == sent
    provider.script(answer_in_wire)
    call = await ask(key, raw, PATHS["responses"], x_windowpane_mode="observe")
    assert call.headers["x-windowpane-mode"] == "observe"
    assert call.headers["x-windowpane-lineage"] == "continued"
    assert provider.requests[-1].raw == call.body


async def test_text_input_is_sent_unchanged(key, provider):
    provider.script(answer_in_wire)
    body = {"model": "strict", "input": "Copper and winter. " * 600}
    call = await ask(key, json.dumps(body).encode(), PATHS["responses"])
    assert call.headers["x-windowpane-context"] == "exact; before=1; after=1"
    await check_all_rebuilt(sent_by(provider))
