"""Replies read without LangChain's chunks: they say what its own class says of them."""

import asyncio

import httpx2
import langsmith.utils
import openai
import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessageChunk, HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI

from chatsite.llm import deltas, providers
from chatsite.llm.deltas import Delta
from chatsite.llm.errors import translate_error
from chatsite.llm.event_stream import EventReader

MESSAGES = [SystemMessage("Be brief."), HumanMessage("hi! I'm Lance")]
TOOL = {"type": "function", "function": {"name": "search_transcript"}}


async def read(model):
    """All deltas as one, and the code of the error that ended them."""
    found, code = [], ""
    try:
        async for batch in deltas.read_deltas(model, MESSAGES, tools=[TOOL]):
            found += batch
    except Exception as error:  # noqa: BLE001
        code = translate_error(error).code
    return {
        "text": "".join(delta.text for delta in found),
        "reasoning": "".join(delta.reasoning for delta in found),
        "refusal": "".join(delta.refusal for delta in found),
        "reason": [d.finish_reason for d in found if d.finish_reason],
        "usage": [delta.usage for delta in found if delta.usage],
        "calls": [call for delta in found for call in delta.calls],
        "error": code,
    }


class Listener(AsyncCallbackHandler):
    def __init__(self):
        self.heard = []

    async def on_llm_new_token(self, token, **options):
        self.heard.append(token)


@pytest.fixture
async def plain(upstream, settings):
    """LangChain's class as it comes, except for what the site leaves to itself."""
    async with openai.DefaultAsyncHttpxClient() as client:
        yield ChatOpenAI(
            model="gpt-x",
            api_key="sk-test-SECRET",
            base_url=upstream.url,
            http_async_client=client,
            max_retries=0,
            stream_usage=True,
        )


@pytest.mark.parametrize(
    "mode",
    [
        *("ok", "length", "content_filter", "eof", "no-reason", "tool-call", "usage"),
        *("foreign-events", "empty-deltas:9", "markdown", "done-only", "html"),
        *("reset", "cut", "bad-json", "bad-shape", "bad-utf8", "reset-first"),
        *("error-event", "error-event-length", "400", "400-context", "401", "429"),
        *("429-quota", "500"),
    ],
)
async def test_delta_reader_reads_what_langchains_own_class_reads(
    upstream, plain, mode
):
    upstream.script("ok", mode, mode)
    await read(plain)  # from now on the prompt is cached there
    assert await read(providers.build("gpt-x")) == await read(plain)
    _, ours, theirs = upstream.calls
    assert ours.body == theirs.body
    for name in ("authorization", "content-type", "accept", "user-agent"):
        assert ours.headers[name] == theirs.headers[name]


@pytest.mark.parametrize(
    "mode", ["ok", "reasoning", "refusal", "think", "bom", "plain-json", "tool-call"]
)
async def test_a_listener_changes_nothing_and_hears_every_word(upstream, mode):
    model = providers.build(mode)
    await read(model)  # from now on the prompt is cached there
    unheard = await read(model)
    listener = Listener()
    model.callbacks = [listener]
    assert deltas.is_traced(model)
    assert await read(model) == unheard
    assert "".join(listener.heard) == unheard["text"]


async def test_langsmith_is_a_listener(upstream, monkeypatch):
    model = providers.build("ok")
    assert not deltas.is_traced(model)
    # A real one would try to reach its server.
    monkeypatch.setattr("langchain_core.tracers.langchain.get_client", object)
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    langsmith.utils.get_env_var.cache_clear()
    try:
        assert deltas.is_traced(model)
    finally:
        monkeypatch.undo()
        langsmith.utils.get_env_var.cache_clear()


async def test_waiting_deltas_are_read_at_once(upstream):
    sizes = []
    reading = deltas.read_deltas(providers.build("ok-slow:8:0.05"), MESSAGES)
    async for batch in reading:
        sizes.append(len([delta for delta in batch if delta.text]))
        await asyncio.sleep(0.25)
    assert len(sizes) <= 4
    assert sum(sizes) >= 8


async def test_a_stream_without_a_buffer_goes_on_meanwhile():
    class Slow:
        async def astream(self, messages):
            for number in range(8):
                await asyncio.sleep(0.02)
                yield AIMessageChunk(f"{number}")

    batches = []
    async for batch in deltas.read_deltas(Slow(), MESSAGES):
        batches.append("".join(delta.text for delta in batch))
        await asyncio.sleep(0.1)
    assert "".join(batches) == "01234567"
    assert len(batches) <= 4


async def test_deltas_before_an_error_are_read_first():
    class Broken:
        async def astream(self, messages):
            yield AIMessageChunk("Before")
            raise ValueError("the noise")

    reading = deltas.read_deltas(Broken(), MESSAGES)
    assert await anext(reading) == [Delta("Before")]
    with pytest.raises(ValueError, match="noise"):
        await anext(reading)


def test_a_client_is_closed_with_its_event_loop(upstream):
    async def ask():
        model = providers.build("ok")
        assert (await read(model))["text"]
        return model.root_async_client

    assert asyncio.run(ask()).is_closed()


async def test_a_process_that_ends_closes_its_clients(upstream):
    model = providers.build("ok")
    await read(model)
    await providers.build.close()
    assert model.root_async_client.is_closed()


async def test_requests_go_through_the_proxy_of_the_environment(upstream, monkeypatch):
    proxy = httpx2.URL(upstream.url)
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
    model = providers.build("ok")
    model.root_async_client.base_url = "http://model.example/v1"
    assert (await read(model))["text"]
    assert upstream.calls[0].path == "http://model.example/v1/chat/completions"


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_are_found_wherever_the_bytes_are_cut(end, size):
    lines = [b": hi", b"data: one", b"", b"event: x", b"data:two", b"data: 2", b""]
    lines += ["data: 水".encode(), b"id: 7", b"", b"", b"data: lost"]
    body, reader = end.join(lines) + end, EventReader()
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    found = [data for piece in pieces for data in reader.feed(piece)]
    assert found == ["one", "two\n2", "水"]
