"""Models that LangChain makes: with the packages of three providers over HTTP, and with
a function of the site. Google's package is installed for scripts/test-google.sh alone.
"""

import asyncio
import gc
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest
from channels.db import database_sync_to_async as reading
from django.core.checks import run_checks
from langchain_core.messages import HumanMessage

from chatsite.llm import dialects, providers, vision
from chatsite.llm.errors import LLMError
from chatsite.llm.langchain.chat_model import ModelSetupError
from chatsite.llm.provider_file import Model, ModelProvider
from chatsite.llm.streaming import ReplyStream
from memory import transcript
from memory.engine.compose import digest_body
from memory.integrity import audit
from memory.models import ModelCall
from memory.view import rebuilding
from tests.fakes import google_api, messages_api, own_tools
from tests.fakes.messages_api import HANG, OVERLOADED, call, say, think

from ..sockets import Chat

OWN = "tests.fakes.messages_api:make_own"
ANTHROPIC = "anthropic:claude-opus-4-7"
GOOGLE, OLLAMA = "google_genai:gemini-3-pro", "ollama:qwen3"
HAS_GOOGLE = find_spec("langchain_google_genai") is not None
APIS = [OWN, ANTHROPIC, OLLAMA, *([GOOGLE] if HAS_GOOGLE else ())]
TOOL = {"type": "function", "function": {"name": "look", "parameters": {}}}


def use_model(settings, asked, **values):
    provider = {"name": "Theirs", "key": "sk-hunter2", **values}
    model = Model(name="claude", model=asked, window=50_000, images=True)
    settings.PROVIDERS = (ModelProvider(**provider, models=[model]),)
    providers.build.cache_clear()
    dialects._known.clear()


@pytest.fixture(autouse=True)
def collected():
    """Collect the coroutines that a client leaves behind: a coroutine that ends while
    a module is imported breaks the import (CPython 3.11, python/cpython#91351).
    """
    yield
    gc.collect()


@pytest.fixture(params=APIS)
def api(request, settings, monkeypatch):
    with messages_api.MessagesAPI() as made:
        monkeypatch.setattr(messages_api, "current", made)
        made.asked = request.param
        is_own = request.param == OWN
        use_model(settings, request.param, **({} if is_own else {"base_url": made.url}))
        settings.TOOLS = own_tools.PATHS
        yield made
        providers.build.cache_clear()
        dialects._known.clear()


async def read(*messages, **bind):
    asked = messages or (HumanMessage("Hello"),)
    stream = ReplyStream("claude", asked, bind=bind)
    return stream, "".join([piece async for piece in stream])


async def test_reply_has_text_reasoning_usage_and_end(api):
    api.script.append([think("I look it up."), say("It is warm.")])
    # Without it, Ollama's package drops what Ollama sends of the reasoning.
    stream, text = await read(reasoning_effort="low")
    assert (text, stream.reasoning) == ("It is warm.", "I look it up.")
    assert stream.finish_reason == "stop"
    usage = stream.usage
    # Ollama reports nothing of a cache.
    cached = (30,) if api.asked != OLLAMA else (0, None)
    assert (usage.input, usage.output) == (40, 5)
    assert usage.cached in cached
    assert stream.attempts == 1


async def test_reply_has_the_calls_of_tools(api):
    api.script.append([say("Wait."), call("look", 1, city="Oslo"), call("look", 2)])
    stream, text = await read(tools=[TOOL])
    assert (text, stream.finish_reason) == ("Wait.", "tool_calls")
    calls = [(each["name"], each["args"]) for each in stream.calls]
    assert calls == [("look", '{"city": "Oslo"}'), ("look", "{}")]
    first, second = (each["id"] for each in stream.calls)
    # Ollama gives none, so its package makes them up.
    assert (first, second) == ("toolu_1", "toolu_2") or api.asked == OLLAMA != first
    assert first != second


@pytest.mark.parametrize(
    ("entry", "code", "attempts"),
    [(401, "auth", 1), (400, "bad_request", 1), (429, "rate_limited", 2)]
    + [(529, "unavailable", 2), (OVERLOADED, "unavailable", 1)],
)
async def test_error_has_the_code_of_the_site(
    api, settings, caplog, entry, code, attempts
):
    settings.MODEL_MAX_ATTEMPTS = 2
    api.script.extend([entry] * 2)
    with pytest.raises(LLMError) as raised:
        await read()
    assert raised.value.code == code
    assert len(api.requests) == attempts
    assert "hunter2" not in f"{raised.value} {caplog.text}"


async def test_stop_closes_the_connection_within_a_second(api):
    api.script.append(HANG)
    stream = ReplyStream("claude", [HumanMessage("Hello")])
    assert (await anext(stream)).strip() == "Wait"
    await asyncio.wait_for(stream.aclose(), 1)
    assert await asyncio.to_thread(api.closed.wait, 1)


async def test_image_and_temperature_arrive(api):
    pixel = "data:image/png;base64,iVBORw0KGgo="
    parts = [{"type": "text", "text": "See"}, {"type": "image_url"}]
    parts[1]["image_url"] = {"url": pixel}
    options = {"temperature": 0.5, "max_tokens": 77, "seed_of_none": 1}
    _stream, text = await read(HumanMessage(parts), **options)
    assert text == "A reply."
    sent = str(api.requests[0])
    assert "iVBORw0KGgo=" in sent
    assert "0.5" in sent or api.asked == OWN
    assert "77" in sent or api.asked == OWN
    assert "seed_of_none" not in sent


THOUGHTS = [("Look.", "signed Look."), ("Again.", "signed Again.")]
SIGNATURES = {
    **dict.fromkeys((OWN, ANTHROPIC), THOUGHTS),
    GOOGLE: [("look_up", google_api.sign(f"toolu_{number}")) for number in (1, 2)],
    OLLAMA: [],
}


def list_signatures(request):
    """Return the signatures of replies that a request repeats, and their messages."""
    if contents := request.get("contents"):
        parts = [part for each in contents for part in each["parts"]]
        signed = [part for part in parts if "thoughtSignature" in part]
        return [(p["functionCall"]["name"], p["thoughtSignature"]) for p in signed]
    sent = request["messages"]
    blocks = [m.get("content", "") if isinstance(m, dict) else m.content for m in sent]
    signed = [b for content in blocks if isinstance(content, list) for b in content]
    signed = [b for b in signed if b.get("type") == "thinking"]
    return [(b["thinking"], b["signature"]) for b in signed]


def list_calls(conversation):
    calls = ModelCall.objects.filter(conversation=conversation, purpose="reply")
    return list(calls.order_by("pk"))


@pytest.mark.django_db(transaction=True)
async def test_six_turns_with_tools_stop_and_retry_are_proved(api, alice, session):
    made = await reading(transcript.create_conversation)(
        alice, model="claude", tools=own_tools.NAMES
    )
    looked = [think("Look."), call("look_up", 1, city="Oslo")]
    again = [think("Again."), call("look_up", 2, city="Rome")]
    async with Chat(made, session) as chat:
        api.script.extend([looked, again, [say("Warm in both.")]])
        assert (await chat.say("How warm is it?"))["state"] == "done"
        for number in range(4):
            assert (await chat.say(f"And {number}?"))["state"] == "done"
        api.script.append(HANG)
        await chat.command(type="send", client_id="last", text="Wait")
        turn = (await chat.until("ack"))[-1]["turn"]
        await chat.until("frame")
        await chat.command(type="stop", turn=turn)
        assert (await chat.until("end", turn=turn))[-1]["state"] == "stopped"
        await chat.command(type="retry", turn=turn)
        assert (await chat.until("end"))[-1]["state"] == "done"
    calls = await reading(list_calls)(made)
    assert len(calls) == 9
    for each in calls:
        assert await reading(rebuilding.verify_context)(each)
        body = {**each.body_fields, "model": "claude"}
        built = await reading(rebuilding.rebuild_context)(each)
        body |= {"messages": built.wire, "tools": built.tools}
        assert digest_body(body) == each.body_sha256
    assert not await reading(lambda: list(audit.check_memory()))()
    # The signed reasoning goes back before the call that it led to.
    assert list_signatures(api.requests[2]) == SIGNATURES[api.asked]


async def test_model_without_tools_or_stream_answers(settings):
    use_model(settings, "tests.fakes.messages_api:make_whole")
    with pytest.raises(LLMError) as raised:
        await read(tools=[TOOL])
    assert not raised.value.instead.has_tools
    asked = [HumanMessage("Hello")]
    stream = ReplyStream(
        "claude", asked, bind={"tools": [TOOL]}, dialect=raised.value.instead
    )
    assert "".join([piece async for piece in stream]) == "Whole."


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("fireworks:x", "pip install langchain-fireworks"),
        ("antropic:x", "Unsupported provider='antropic'"),
        ("no.such_module:make", "No module named 'no'"),
        ("tests.fakes.messages_api:mak", "has no attribute 'mak'"),
        ("tests.fakes.messages_api:make_none", "it is no chat model of LangChain"),
    ],
)
async def test_model_that_is_not_made_is_reported_at_the_start(settings, asked, words):
    use_model(settings, asked)
    with pytest.raises(ModelSetupError, match=words):
        providers.build("claude")
    [found] = [each for each in run_checks() if each.id == "chat.E012"]
    assert words in found.msg
    assert "hunter2" not in found.msg
    assert vision.takes_images("claude")
    with pytest.raises(LLMError) as raised:
        await read()
    assert raised.value.code == "bad_request"


def test_provider_is_not_openai(settings):
    use_model(settings, ANTHROPIC)
    assert providers.find_host("claude") == "anthropic"
    assert providers.name_provider("claude") == "Theirs"
    assert providers.cache_options("claude", "key") == {}
    assert providers.sampling_options("claude", None, 9) == {"max_tokens": 9}
    assert providers.context_window("claude") == 50_000


def test_site_without_such_a_model_does_not_import_langchain():
    code = (
        "import sys, django; django.setup();"
        "from chatsite.llm import openai_chat, providers; providers.build('gpt-x');"
        "sys.exit('langchain' in sys.modules)"
    )
    # An app of MCP servers imports it for its own needs.
    env = {**os.environ, "EXTRAS": "", "OPENAI_API_KEY": "sk-1", "DEBUG": "true"}
    subprocess.run([sys.executable, "-c", code], check=True, env=env)


def test_site_with_the_demo_model_imports_only_what_it_uses():
    code = "import sys, django; django.setup(); from chatsite import asgi, urls;"
    code += "sys.exit(', '.join({'openai', 'redis', 'PIL'} & {*sys.modules}) or 0)"
    env = {**os.environ, "EXTRAS": "endpoint,lab", "DEBUG": "true"}
    env.pop("OPENAI_API_KEY", None)
    subprocess.run([sys.executable, "-c", code], check=True, env=env)
