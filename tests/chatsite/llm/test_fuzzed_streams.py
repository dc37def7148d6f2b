"""Streams as providers really send them, made up at random: every one ends in time,
as a reply or as an LLMError, and an honest one loses nothing.

FUZZ_SEED repeats a run, FUZZ_ROUNDS makes it longer.
"""

import asyncio
import json
import os
import random
import time
from dataclasses import dataclass, field

import pytest
from langchain_core.messages import HumanMessage

from chatsite.llm import streaming
from chatsite.llm.errors import DETAILS, LLMError
from chatsite.llm.streaming import ReplyStream, TokenUsage, clean_text
from tests.fakes import upstream as fake
from tests.patience import PATIENCE

# The same in every run of the suite; another by hand tries other streams.
SEED = int(os.environ.get("FUZZ_SEED", "20261122"))
ROUNDS = int(os.environ.get("FUZZ_ROUNDS", "150"))
SECONDS = 8
WORDS = [
    "Hello",
    " there",
    " 水",
    "\U0001f600",
    "\n\n",
    "a\x00b",
    "\ud83d",
    " <b>",
    "{}",
]
REASONS = [
    "stop",
    "STOP",
    "length",
    "max_tokens",
    "abort",
    "error",
    None,
    "",
    7,
    {"a": 1},
]
NUMBERS = [-1, 0, 7, 12.5, 2**31, 2**70, 1e308, None, "9", True, [], {"x": 1}]
BREAKS = [
    b'data: {"choices": [{"del\n\n',
    b'data: {"choices": 7}\n\n',
    b'data: {"choices": [7]}\n\n',
    b'data: [1, 2]\n\ndata: "x"\n\n',
    b'data: {"x": "\xff\xfe"}\n\n',
    b'data: {"error": {"message": "no", "code": {"a": 1}, "type": [1]}}\n\n',
    b'data: {"error": "overloaded"}\n\n',
    b'data: {"error": {"code": 429}}\n\n',
    b"<html>",
    b"",
]
STATUSES = [400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 503, 529]
WAITS = ["nan", "inf", "-5", "1e400", "3600", "soon", "Mon, 99 Foo 99999 00:00:00 GMT"]
BODIES = [
    "",
    "x",
    "[]",
    "7",
    '{"error": 7}',
    '{"error": {"message": null, "code": []}}',
]


@dataclass
class Plan:
    """A stream, and its expected result (`text` None: it may fail)."""

    body: bytes = b""
    status: int = 200
    headers: dict = field(default_factory=dict)
    kind: str = "text/event-stream"
    goes_on: bytes = b""
    text: str | None = None
    thought: str = ""
    reason: str | None = None


def make_plan(seed):
    dice = random.Random(seed)
    kind = dice.choices(["honest", "json", "broken", "refused"], [8, 2, 3, 2])[0]
    if kind == "refused":
        headers = {"Retry-After": dice.choice(WAITS)} if dice.random() < 0.6 else {}
        body = dice.choice(BODIES).encode()
        return Plan(body, dice.choice(STATUSES), headers, "application/json")
    plan = make_document(dice) if kind == "json" else make_stream(dice)
    if kind == "broken":
        place = dice.randrange(len(plan.body) + 1)
        plan.body = plan.body[:place] + dice.choice(BREAKS)
        plan.text, plan.goes_on = None, b""
    if dice.random() < 0.3:
        plan.body = b"\xef\xbb\xbf" + plan.body
    return plan


def make_document(dice):
    """A reply in plain JSON, from a server that can't stream."""
    text, reason = "".join(dice.choices(WORDS, k=4)) + ".", dice.choice(REASONS)
    message = {"role": "assistant", "content": text}
    thought = dice.choice(["", "Hmm."])
    if thought:
        message["reasoning_content"] = thought
    choice = {"index": 0, "message": message, "finish_reason": reason}
    document = {"object": "chat.completion", "choices": [choice], "usage": usage(dice)}
    indent = dice.choice([None, 2])
    body = json.dumps(document, indent=indent).encode()
    return Plan(body, kind="application/json", **outcome(text, thought, reason))


def make_stream(dice):
    pieces, thoughts = dice.choices(WORDS, k=dice.randint(1, 8)), []
    pieces.append(".")
    if dice.random() < 0.3:
        thoughts = dice.choices(["Hm. ", "Wait, ", "so "], k=dice.randint(1, 5))
    is_refusal = dice.random() < 0.15
    name = "refusal" if is_refusal else "content"
    key = dice.choice(["reasoning_content", "reasoning"])
    events = [chunk({"role": "assistant", "content": ""})]
    events += [chunk({key: each, "content": None}) for each in thoughts]
    events += [chunk({name: as_parts(dice, name, each)}) for each in pieces]
    for _ in range(dice.randint(0, 4)):
        events.insert(dice.randrange(1, len(events) + 1), noise(dice))
    reason = dice.choice(REASONS)
    events.append(chunk(dice.choice([{}, None, {"content": ""}]), reason))
    if dice.random() < 0.7:
        events.append(event({"choices": dice.choice([[], None]), "usage": usage(dice)}))
    ends = dice.random() < 0.8 or not isinstance(reason, str) or not reason
    if ends:
        events += [b"data: [DONE]\n\n"] * dice.randint(0, 1)
    plan = Plan(b"".join(events), **outcome("".join(pieces), "".join(thoughts), reason))
    plan.goes_on = b"" if ends else dice.choice([b": ping\n\n", chunk({"content": ""})])
    return plan


def outcome(text, thought, reason):
    reason = reason if isinstance(reason, str) and reason else None
    return {"text": clean_text(text), "thought": thought, "reason": reason}


def as_parts(dice, name, text):
    is_list = name == "content" and dice.random() < 0.1
    return [{"type": "text", "text": text}] if is_list else text


def noise(dice):
    return dice.choice(
        [
            b": keep-alive\n\n",
            b'event: execute\ndata: {"code": "alert(1)"}\n\n',
            chunk({}),
            chunk(None),
            chunk({"role": dice.choice(["user", "tool", "system", None, 7])}),
            chunk({"tool_calls": dice.choice([None, []]), "logprobs": 1}),
            chunk({"content": dice.choice([None, 7, {"a": 1}, [None, 7]])}),
            event({"choices": [], "usage": usage(dice)}),
        ]
    )


def usage(dice):
    if dice.random() < 0.2:
        return dice.choice([None, 7, "many", [1]])
    counts = dice.choices(NUMBERS, k=3)
    details = dice.choice([{"cached_tokens": counts[2]}, None, 7])
    names = ("prompt_tokens", "completion_tokens")
    whole = dict(zip(names, counts, strict=False))
    return {**whole, "total_tokens": 1, "prompt_tokens_details": details}


def chunk(delta, reason=None):
    return event({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})


def event(data):
    return f"data: {json.dumps(data)}\n\n".encode()


def answer(x, seed):
    plan, dice = make_plan(seed), random.Random(seed)
    x.open(plan.status, plan.kind, **plan.headers)
    rest = plan.body
    while rest:
        size = dice.randint(1, max(1, len(plan.body) // 3))
        x.write(rest[:size])
        rest = rest[size:]
    while plan.goes_on:
        x.wait(0.02)
        x.write(plan.goes_on)
    x.close()


async def listen(seed):
    messages = [HumanMessage(f"mode=fuzz:{seed}")]
    stream, text, error = ReplyStream("ok", messages, first=2, idle=2), "", ""
    try:
        async for piece in stream:
            text += piece
    except LLMError as failure:
        error = failure.code
    return stream, text, error


def check(plan, stream, text, error, seconds):
    assert seconds < SECONDS * PATIENCE
    assert not error or error in DETAILS
    assert "\0" not in text + stream.reasoning
    (text + stream.reasoning).encode()
    counts = stream.usage or TokenUsage(None, None, None)
    found = (counts.input, counts.cached, counts.output)
    assert all(n is None or 0 <= n <= 10_000_000 for n in found)
    assert (counts.cached or 0) <= (counts.input or 0)
    if plan.text is not None:
        assert (error, text) == ("", plan.text)
        assert stream.reasoning == plan.thought
        assert stream.finish_reason == plan.reason
        assert stream.attempts == 1


async def test_every_stream_ends_and_an_honest_one_loses_nothing(upstream, monkeypatch):
    seed = SEED
    print(f"FUZZ_SEED={seed}")  # noqa: T201
    monkeypatch.setitem(fake.MODES, "fuzz", answer)
    monkeypatch.setattr(streaming, "USAGE_TIMEOUT", 0.3)
    monkeypatch.setattr(streaming, "FIRST_PAUSE", 0.001)
    # What is imported and built once is not what is measured.
    await listen("warm")
    for number in range(ROUNDS):
        name, started = f"{seed}-{number}", time.monotonic()
        async with asyncio.timeout(3 * SECONDS * PATIENCE):
            stream, text, error = await listen(name)
        try:
            check(make_plan(name), stream, text, error, time.monotonic() - started)
        except AssertionError as wrong:
            pytest.fail(f"FUZZ_SEED={seed}, round {number}: {make_plan(name)}\n{wrong}")
