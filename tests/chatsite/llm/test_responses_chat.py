"""Models of the Responses API, and the unmodified client of langchain-openai beside
them, at one fake server.
"""

import asyncio
import json

import pytest
from channels.db import database_sync_to_async as reading
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_openai import ChatOpenAI
from langchain_openai.chat_models import base

from chatsite.llm import dialects, known_models, providers
from chatsite.llm.errors import LLMError
from chatsite.llm.provider_file import ModelProvider
from chatsite.llm.streaming import ReplyStream, fetch_reply
from memory import transcript
from memory.engine.compose import dump_body
from memory.engine.tools.response_items import make_items
from memory.integrity import audit
from memory.models import Message, ModelCall
from memory.view import rebuilding
from tests.fakes import own_tools
from tests.fakes.wires import Call, Reply, write_events

from ..scenes import memory_url
from ..sockets import Chat

MODEL = "gpt-5-pro"
TOOL = {"type": "function", "function": {"name": "look", "parameters": {}}}
SEEN = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


def reply(text="", *calls, reasoning=()):
    def answer(exchange):
        made = Reply(text, [Call(name, json.dumps(args)) for name, args in calls])
        for event in write_events(
            "responses", MODEL, made._replace(reasoning=reasoning)
        ):
            exchange.write(event)
        exchange.close()

    return answer


def send(*events):
    def answer(exchange):
        for each in events:
            exchange.event(each)
        exchange.close()

    return answer


def hang(exchange):
    exchange.event({"type": "response.output_text.delta", "delta": "Wait"})
    exchange.wait(60)


@pytest.fixture
def use(settings, upstream):
    def use(name=MODEL, **values):
        model = {"name": name, "window": 50_000, "images": True, **values}
        given = {"name": "Ours", "base_url": upstream.url, "key": "sk-hunter2"}
        made = ModelProvider.model_validate({**given, "models": [model]})
        settings.PROVIDERS = (made,)
        settings.CHAT_MODEL = ""
        settings.TOOLS = own_tools.PATHS
        providers.build.cache_clear()
        dialects._known.clear()

    use(use_responses_api=True)
    yield use
    providers.build.cache_clear()
    dialects._known.clear()


async def read(*messages, **bind):
    asked = messages or (HumanMessage("hi!"),)
    options = providers.sampling_options(MODEL, None) | bind
    stream = ReplyStream(MODEL, asked, bind=options)
    return stream, "".join([piece async for piece in stream])


async def test_reply_has_text_reasoning_calls_usage_and_end(use, upstream):
    calls = [("look", {"city": "Oslo"}), ("look", {})]
    upstream.script(reply("Wait for it.", *calls, reasoning=["I look.", "Then I say."]))
    stream, text = await read(tools=[TOOL])
    assert (text, stream.finish_reason) == ("Wait for it.", "tool_calls")
    assert stream.reasoning == "I look.\n\nThen I say."
    found = [(each["name"], json.loads(each["args"])) for each in stream.calls]
    assert found == calls
    usage = stream.usage
    assert (usage.input, usage.cached, usage.output) == (9, 4, 5)
    [kept] = stream.extras["reasoning_details"]
    assert kept["encrypted_content"] == "sealed I look. Then I say."


async def test_body_that_leaves_has_the_fields_of_this_api(use, upstream):
    options = {"reasoning_effort": "low", "service_tier": "flex", "seed": 7}
    use(use_responses_api=True, options=options)
    stream, text = await read(max_tokens=50)
    assert text == "Reply to: hi!"
    [sent] = upstream.requests
    assert sent.path == "/v1/responses"
    assert sent.raw == dump_body(sent.body)
    assert sent.body == {
        **{"model": MODEL, "stream": True, "store": False, "service_tier": "flex"},
        **{"reasoning": {"effort": "low", "summary": "auto"}, "max_output_tokens": 50},
        "include": ["reasoning.encrypted_content"],
        "input": [{"type": "message", "role": "user", "content": "hi!"}],
    }
    assert stream.body_fields.keys() == sent.body.keys() - {"model", "input"}


async def test_messages_become_the_items_of_langchain(use, upstream):
    asked = [{"name": "look", "args": {"a": "é"}, "id": "call_1"}]
    messages = [
        SystemMessage("S"),
        HumanMessage([{"type": "text", "text": "see"}, SEEN]),
        AIMessage("I look.", tool_calls=asked),
        ToolMessage("found", tool_call_id="call_1"),
        AIMessage("So."),
        HumanMessage("hi!"),
    ]
    await read(*messages, tools=[TOOL], tool_choice="none")
    theirs = ChatOpenAI(
        **{"model": MODEL, "api_key": "sk-1", "base_url": upstream.url},
        **{"use_responses_api": True, "store": False, "streaming": True},
        **{
            "include": ["reasoning.encrypted_content"],
            "reasoning": {"summary": "auto"},
        },
    )
    bound = theirs.bind(tools=[TOOL], tool_choice="none", stream=True)
    chunks = [each async for each in bound.astream(messages)]
    assert "".join(each.text for each in chunks) == "Reply to: hi!"
    mine, its = (each.body for each in upstream.requests)
    assert mine == its


async def test_client_of_langchain_reads_the_same_of_the_server(use, upstream):
    made = reply("Wait.", ("look", {"city": "Oslo"}), reasoning=["I look."])
    upstream.script(made, made)
    stream, text = await read(tools=[TOOL])
    theirs = ChatOpenAI(
        **{"model": MODEL, "api_key": "sk-1", "base_url": upstream.url},
        **{"use_responses_api": True, "output_version": "responses/v1"},
    )
    whole = None
    async for chunk in theirs.bind(tools=[TOOL]).astream("hi!"):
        whole = chunk if whole is None else whole + chunk
    assert whole.text == text
    [call], [mine] = whole.tool_calls, stream.calls
    assert (call["name"], call["args"]) == (mine["name"], json.loads(mine["args"]))
    assert whole.usage_metadata["input_tokens"] == stream.usage.input
    [thought] = [each for each in whole.content if each["type"] == "reasoning"]
    assert thought["summary"][0]["text"] == stream.reasoning
    [kept] = stream.extras["reasoning_details"]
    assert thought["encrypted_content"] == kept["encrypted_content"]


@pytest.mark.parametrize(
    ("events", "code"),
    [
        ([{"type": "error", "code": "server_error", "message": "x"}], "unavailable"),
        ([{"type": "error", "code": "rate_limit_exceeded"}], "rate_limited"),
        ([{"type": "response.output_text.delta", "delta": 7}], "bad_response"),
        ([{"type": "response.completed"}], "bad_response"),
        ([{"type": "response.new_thing"}, {}], "bad_response"),
    ],
)
async def test_error_has_the_code_of_the_site(use, settings, upstream, events, code):
    settings.MODEL_MAX_ATTEMPTS = 1
    upstream.script(send(*events))
    with pytest.raises(LLMError) as raised:
        await read()
    assert raised.value.code == code


async def test_response_that_is_too_long_is_cut_off(use, upstream):
    ended = {"status": "incomplete", "incomplete_details": {}}
    ended["incomplete_details"]["reason"] = "max_output_tokens"
    upstream.script(
        send(
            {"type": "response.output_text.delta", "delta": "A begin"},
            {"type": "response.incomplete", "response": ended},
        )
    )
    stream, text = await read()
    assert (text, stream.finish_reason) == ("A begin", "length")


async def test_reasoning_that_is_refused_is_left_out_afterwards(use, upstream):
    words = (
        "Unsupported parameter: 'reasoning.summary' is not supported with this model."
    )
    upstream.script(lambda exchange: exchange.error(400, words))
    for _ in range(2):
        assert (await read())[1] == "Reply to: hi!"
    sent = ["reasoning" in each.body for each in upstream.requests]
    assert sent == [True, False, False]


async def test_summary_has_its_schema(use, upstream):
    class Found(providers.BaseModel):
        name: str

    use(use_responses_api=True)
    provider = providers.find_provider(MODEL)
    object.__setattr__(provider, "structured_output", True)
    await fetch_reply(MODEL, [HumanMessage("hi!")], schema=Found, max_tokens=9)
    [sent] = upstream.requests
    assert sent.body["text"]["format"]["type"] == "json_schema"
    assert sent.body["text"]["format"]["schema"] == Found.model_json_schema()
    assert sent.body["max_output_tokens"] == 9


def list_calls(conversation):
    calls = ModelCall.objects.filter(conversation=conversation, purpose="reply")
    return list(calls.order_by("pk"))


@pytest.mark.django_db(transaction=True)
async def test_turns_with_tools_stop_and_retry_are_proved(
    use, upstream, alice, session
):
    made = await reading(transcript.create_conversation)(
        alice, model=MODEL, tools=own_tools.NAMES
    )
    looked = reply("", ("look_up", {"city": "Oslo"}), reasoning=["Look."])
    again = reply("", ("look_up", {"city": "Rome"}), reasoning=["Again."])
    async with Chat(made, session) as chat:
        upstream.script(looked, again, reply("Warm in both.", reasoning=["So."]))
        assert (await chat.say("How warm is it?"))["state"] == "done"
        upstream.script(hang)
        await chat.command(type="send", client_id="last", text="Wait")
        turn = (await chat.until("ack"))[-1]["turn"]
        await chat.until("frame")
        await chat.command(type="stop", turn=turn)
        assert (await chat.until("end", turn=turn))[-1]["state"] == "stopped"
        assert await asyncio.to_thread(upstream.wait_closed_early, 1, 2)
        await chat.command(type="retry", turn=turn)
        assert (await chat.until("end"))[-1]["state"] == "done"
    calls = await reading(list_calls)(made)
    assert len(calls) == 5
    for each, sent in zip(calls, upstream.requests, strict=True):
        assert await reading(rebuilding.verify_context)(each)
        built = await reading(rebuilding.rebuild_context)(each)
        assert dump_body(rebuilding.make_sent_body(each, built)) == sent.raw
    assert not await reading(lambda: list(audit.check_memory()))()
    # Encrypted reasoning goes back before the call that it led to.
    items = upstream.requests[2].body["input"]
    sealed = [each.get("encrypted_content") or each["type"] for each in items[-6:]]
    assert sealed == [
        *("sealed Look.", "function_call", "function_call_output"),
        *("sealed Again.", "function_call", "function_call_output"),
    ]
    final = await reading(Message.objects.get)(text="Warm in both.")
    assert final.reasoning == "So."


@pytest.mark.django_db
def test_json_of_the_context_has_the_items(use, alice, client):
    made = transcript.create_conversation(alice, model=MODEL)
    client.force_login(alice)
    found = client.get(f"/c/{made.uuid}/context.json").json()
    assert found["input"] == make_items(found["messages"])
    shown = client.get(memory_url("raw", made))
    assert "input" in shown.content.decode()


@pytest.mark.parametrize("name", ["gpt-5-pro", "gpt-5.4-mini", "o3-pro", "gpt-4.1"])
def test_models_that_have_only_this_api_are_asked_there(settings, name):
    settings.OPENAI_API_KEY = "sk-1"
    assert providers.uses_responses_api(name) == name.endswith("-pro")
    settings.OPENAI_BASE_URL = "http://127.0.0.1:1/v1"
    assert not providers.uses_responses_api(name)


def test_models_are_those_that_langchain_asks_there():
    known = [*base._RESPONSES_API_ONLY_PREFIXES, "gpt-5.1-codex-max"]
    assert [n for n in known if not known_models.RESPONSES_ONLY.match(n)] == []


async def test_chunks_of_langchain_say_the_same(use, upstream):
    made = reply("Wait.", ("look", {"city": "Oslo"}), reasoning=["I look."])
    upstream.script(made, made)
    stream, text = await read(tools=[TOOL])
    chunks = providers.build(MODEL).astream([HumanMessage("hi!")], tools=[TOOL])
    whole = None
    async for chunk in chunks:
        whole = chunk if whole is None else whole + chunk
    assert (whole.text, whole.additional_kwargs["reasoning"]) == (text, "I look.")
    assert whole.tool_calls[0]["args"] == {"city": "Oslo"}
    assert whole.usage_metadata["input_tokens"] == stream.usage.input
