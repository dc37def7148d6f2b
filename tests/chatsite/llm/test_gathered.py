"""Calls of tools in streams: read in every form that servers send, and at a cost that
grows with the stream and no faster.
"""

import asyncio
import json
import time

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import HumanMessage
from langchain_core.messages.tool import tool_call_chunk

from chatsite.llm import event_stream, openai_chat, providers, streaming
from chatsite.llm.errors import LLMError
from chatsite.llm.gathered import (
    CALL_CHARS,
    MAX_READ_CALLS,
    Calls,
    Extras,
    TextParts,
    describe_extras,
)
from chatsite.llm.streaming import ReplyStream
from tests.fakes.calling import calling

TOOL = {"type": "function", "function": {"name": "look_up"}}
MESSAGES = [HumanMessage("How warm is it?")]
OSLO, ROME = '{"city": "Oslo"}', '{"city": "Rome"}'


@pytest.fixture(params=["deltas", "chunks"])
def model(request):
    """Read without LangChain's chunks, and with them, as where something listens."""
    if request.param == "chunks":
        providers.build("ok").callbacks = [AsyncCallbackHandler()]
    return "ok"


async def read(name="ok"):
    stream = ReplyStream(name, MESSAGES, bind={"tools": [TOOL]}, strict=False)
    text = "".join([piece async for piece in stream])
    return stream, text


def found(stream):
    return [(call["name"], call["args"], call["id"]) for call in stream.calls]


def chunks(*deltas, finish="tool_calls"):
    def answer(x):
        for delta in deltas:
            x.chunk({"tool_calls": delta} if isinstance(delta, list) else delta)
        x.end(finish)

    return answer


def whole(*calls, reason="tool_calls"):
    """The reply of a server that does not stream."""

    def answer(x):
        message = {"role": "assistant", "content": None, "tool_calls": list(calls)}
        choice = {"index": 0, "message": message, "finish_reason": reason}
        x.send_json(x._envelope(choices=[choice]))

    return answer


def call(arguments=None, name="look_up", **fields):
    function = {"name": name, "arguments": arguments}
    return {**fields, "function": {k: v for k, v in function.items() if v is not None}}


def piece(**fields):
    return tool_call_chunk(**{"name": None, "args": None, "id": None, **fields})


FORMS = {
    "no index": chunks([call(OSLO, id="a")], [call(ROME, id="b")]),
    "no index, in one delta": chunks([call(OSLO, id="a"), call(ROME, id="b")]),
    "no index, in pieces": chunks(
        [call("", id="a")],
        *([call(text, None)] for text in (OSLO[:5], OSLO[5:])),
        [call(ROME[:5], id="b")],
        [call(ROME[5:], None, id="b")],
    ),
    "one index for all": chunks(
        [call(OSLO[:5], id="a", index=0)],
        [call(OSLO[5:], None, index=0)],
        [call(ROME[:5], id="b", index=0)],
        [call(ROME[5:], None, index=0)],
    ),
    "name and id in each piece": chunks(
        *([call(text, id="a", index=0)] for text in (OSLO[:5], OSLO[5:])),
        *([call(text, id="b", index=1)] for text in (ROME[:5], ROME[5:])),
    ),
    "name in pieces": chunks(
        [call("", "look", id="a", index=0)],
        [call(OSLO, "_up", index=0)],
        [call(ROME, id="b", index=1)],
    ),
    "objects": chunks(
        [call(json.loads(OSLO), id="a", index=0)],
        [call(json.loads(ROME), id="b", index=1)],
    ),
    "a whole message": whole(call(OSLO, id="a"), call(ROME, id="b")),
    "a whole message with objects": whole(
        call(json.loads(OSLO), id="a"), call(json.loads(ROME), id="b"), reason="stop"
    ),
    "indices as texts": chunks(
        [call(OSLO, id="a", index="0")], [call(ROME, id="b", index="1")]
    ),
}


@pytest.mark.parametrize("form", FORMS)
async def test_calls_are_read_in_every_form(upstream, model, form):
    upstream.script(FORMS[form])
    stream, text = await read(model)
    assert text == ""
    assert found(stream) == [("look_up", OSLO, "a"), ("look_up", ROME, "b")]


async def test_calls_without_ids_are_told_apart_by_their_names(upstream, model):
    upstream.script(chunks([call(OSLO)], [call(ROME[:5])], [call(ROME[5:], None)]))
    stream, _ = await read(model)
    assert found(stream) == [("look_up", OSLO, None), ("look_up", ROME, None)]


async def test_calls_of_a_whole_message_may_share_an_id(upstream, model):
    upstream.script(whole(call(OSLO, id="0"), call(ROME, id="0")))
    stream, _ = await read(model)
    assert found(stream) == [("look_up", OSLO, "0"), ("look_up", ROME, "0")]


@pytest.mark.parametrize(
    "calls",
    [
        *([None], [7], ["look_up"], [{}], [{"function": 7}], {"index": 0}, "look_up"),
        *([call(7, 7, id=7, index=True)], [{"index": 0}], [[]], {}),
    ],
)
async def test_chunks_without_a_call_are_ignored(upstream, model, calls):
    upstream.script(chunks({"tool_calls": calls}, {"content": "Warm."}, finish="stop"))
    stream, text = await read(model)
    assert (text, stream.calls) == ("Warm.", [])


async def cost_of(upstream, answer):
    """Processor time of the thread that reads it, and the stream. The least of three:
    beside other work the same costs half as much again."""
    costs = []
    for _ in range(3):
        upstream.script(answer)
        started = time.thread_time()
        stream, _ = await read()
        costs.append(time.thread_time() - started)
    return min(costs), stream


def write_words(count):
    def answer(x):
        for _ in range(count):
            x.text("abc ")
        x.end()

    return answer


async def test_long_arguments_cost_what_a_long_text_costs(upstream):
    size = 40_000
    await read()
    plain, _ = await cost_of(upstream, write_words(size // 4))
    arguments = {"city": "abc " * (size // 4)}
    cost, stream = await cost_of(upstream, calling(("look_up", arguments), split=4))
    assert json.loads(stream.calls[0]["args"]) == arguments
    assert cost < 3 * plain


async def test_a_reply_with_more_calls_than_any_turn_runs_is_cut(upstream):
    for count in (MAX_READ_CALLS, MAX_READ_CALLS + 20):
        upstream.script(calling(*[("look_up", {})] * count))
        stream, _ = await read()
        is_cut = count > MAX_READ_CALLS
        assert stream.finish_reason == ("length" if is_cut else "tool_calls")
        assert len(stream.calls) == min(count, MAX_READ_CALLS + 1)


FLOODS = {
    "calls": lambda n: {"index": n},
    "ids": lambda n: {"index": n, "id": "i" * 1000},
    "names": lambda n: {"index": 0, "function": {"name": f"n{n}" * 200}},
    "arguments": lambda n: {"index": 0, "function": {"arguments": "x" * 1000}},
    "calls without an index": lambda n: {"function": {"name": "look_up"}},
    "objects": lambda n: {"index": n, "function": {"arguments": {"x": "y" * 1000}}},
}


@pytest.mark.parametrize("flood", FLOODS)
async def test_a_flood_of_calls_is_cut_where_a_reply_is(upstream, monkeypatch, flood):
    monkeypatch.setattr(streaming, "MAX_REPLY_CHARS", 20_000)

    def answer(x):
        number = 0
        while True:
            sent = {"id": "", "function": {"name": "x"}, **FLOODS[flood](number)}
            x.chunk({"tool_calls": [sent]})
            number += 1

    upstream.script(answer)
    stream, _ = await read()
    assert stream.finish_reason == "length"
    size = sum(len(str(field or "")) for each in found(stream) for field in each)
    assert size + CALL_CHARS * len(stream.calls) < 22_100


@pytest.mark.parametrize("field", ["refusal", "reasoning_content"])
async def test_refusal_and_reasoning_have_limits(upstream, monkeypatch, field):
    monkeypatch.setattr(streaming, "MAX_REPLY_CHARS", 1_000)
    upstream.script(chunks(*[{field: "0123456789"}] * 500, finish="stop"))
    stream, _ = await read()
    kept = stream.refusal + stream.reasoning
    assert kept == "0123456789" * 100


async def test_reasoning_of_many_pieces_costs_what_a_text_costs(upstream):
    await read()
    plain, _ = await cost_of(upstream, write_words(10_000))
    thoughts = [{"reasoning_content": "水水水 "}] * 10_000
    cost, stream = await cost_of(upstream, chunks(*thoughts, finish="stop"))
    assert len(stream.reasoning) == 40_000
    assert cost < 2 * plain


async def test_chunks_that_say_nothing_cost_what_words_cost(upstream):
    await read()
    plain, _ = await cost_of(upstream, write_words(4_000))

    def answer(x):
        for _ in range(4_000):
            x.event(x._envelope(choices=[], usage={"prompt_tokens": 7}))
        x.text("Warm.")
        x.end()

    cost, stream = await cost_of(upstream, answer)
    assert stream.finish_reason == "stop"
    assert cost < 2 * plain


async def test_a_split_character_of_the_reasoning_is_whole(upstream):
    halves = [{"reasoning_content": half} for half in ("a \ud83d", "\ude00!\x00")]
    upstream.script(chunks(*halves, finish="stop"))
    stream, _ = await read()
    assert stream.reasoning == "a 😀!"


def endless(piece, head=b""):
    def answer(x):
        if head:
            x.write(head)
        while True:
            x.write(piece)

    return answer


BODIES = {
    "a line": endless(b"x" * 10_000, b"data: "),
    "an event": endless(b"data: " + b"x" * 10_000 + b"\n"),
    "spaces": endless(b" " * 10_000),
    "a document": endless(b"x" * 10_000, b'{"x": "'),
    "comments": endless(b": " + b"x" * 10_000 + b"\n"),
    "empty events": endless(b'data: {"choices": []}\n\n' * 400),
}


@pytest.mark.parametrize("body", BODIES)
async def test_a_body_without_an_end_is_cut(upstream, monkeypatch, body):
    monkeypatch.setattr(event_stream, "MAX_JSON_BYTES", 200_000)
    monkeypatch.setattr(openai_chat, "MAX_BODY_BYTES", 1_000_000)
    monkeypatch.setattr(streaming, "FIRST_PAUSE", 0.001)
    upstream.script(*[BODIES[body]] * 3)
    with pytest.raises(LLMError) as caught:
        await read()
    assert caught.value.code == "bad_response"
    assert await asyncio.to_thread(upstream.wait_closed_early, 3)


def test_words_end_at_their_limit():
    words = TextParts(5)
    assert not words
    for text in ("", "abc", "def", "ghi"):
        words.add_text(text)
    assert str(words) == "abcde"


@pytest.mark.parametrize("field", ["id", "name", "args"])
def test_pieces_of_a_call_are_counted(field):
    calls = Calls(CALL_CHARS + 8)
    calls.add(piece(**{field: "abcd"}, index=0))
    assert not calls.is_full
    calls.add(piece(name="xyzuvwxyz", index=0))
    calls.add(piece(args="never", index=0))
    assert calls.is_full
    (only,) = calls.to_chunks()
    assert only["args"] in ("", "abcd")
    assert only["name"] in ("xyzu", "abcdxyzu")


PNG = "data:image/png;base64,iVBORw0KGgoAAAAN"


@pytest.mark.parametrize(
    ("extras", "lines"),
    [
        ({}, ""),
        (
            {"citations": ["https://example.org/a", "https://example.org/b"],
             "search_results": [{"title": "A", "url": "https://example.org/a"}]},
            "[1] A: <https://example.org/a>  \n[2] <https://example.org/b>",
        ),
        (
            {"annotations": [{"type": "url_citation", "url_citation":
             {"url": "https://example.org/r", "title": "The\nrings"}}]},
            "[1] The rings: <https://example.org/r>",
        ),
        (
            {"annotations": [{"type": "url_citation", "url": "https://example.org/"}]},
            "[1] <https://example.org/>",
        ),
        (
            {"images": [{"type": "image_url", "image_url": {"url": PNG}}]},
            "[image/png, 12 bytes, not kept]",
        ),
        ({"images": [7]}, "[image, not kept]"),
        ({"citations": ["javascript:x", "https://a b", 7, None, {"url": 3}]}, ""),
        ({"citations": "https://example.org/", "images": {}}, ""),
    ],
)  # fmt: skip
def test_extras_of_a_reply_are_described(extras, lines):
    assert describe_extras(extras) == lines


def test_repeated_and_torn_entries_are_joined():
    extras = Extras(1_000)
    for text in ("Hm", "m", "m", ", so."):
        extras.add_entries(
            {"reasoning_details": [{"type": "a", "index": 0, "text": text}]}
        )
        extras.add_entries({"citations": ["https://example.org/"]})
    assert extras.to_value() == {
        "reasoning_details": [{"type": "a", "index": 0, "text": "Hmmm, so."}],
        "citations": ["https://example.org/"],
    }
    extras.add_entries({"images": ["x" * 2_000]})
    assert extras.to_value() == {}
