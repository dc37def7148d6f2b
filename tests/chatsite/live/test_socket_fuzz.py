"""Whatever frames come in, the socket answers, stays open, and nothing is logged."""

import json
import logging
import os
import random
import sys

import pytest
from channels.db import database_sync_to_async

from chatsite.protocol import events
from chatsite.turns import audit
from memory import transcript

from ..sockets import Chat

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = 400
TYPES = [
    *("send", "stop", "retry", "regenerate", "edit", "consent", "cancel_call", "sync"),
    *("dance", "chat.event"),
]
TEXTS = [
    *("", " ", "\0", "\ud800", "\udfff\ud800", "\u200b\u202e", "\ufeff", "a\0b"),
    *(
        "Hello",
        "</script><b>",
        "{{ 7*7 }}",
        "%s%n",
        "狗" * 300,
        "\U0001f98a",
        "e\u0301",
    ),
    *("x" * 32_000, "x" * 32_001, "\x85\u2028\x1b[2J", "'; DROP TABLE", "../../etc"),
]
NUMBERS = [0, 1, 2, -1, 2**31, 2**63 - 1, 2**63, 10**4000, 1.5, 1e999, float("nan")]
ODD = [None, True, False, [], {}, [[]], {"a": {}}, *TEXTS, *NUMBERS]
RAW = [
    *("", "{", "}", "[" * 5000, '{"type":' * 5000, "null", "NaN", '"send"', "\ufeff{}"),
    *('{"type":"sync"}x', '{"type":"sync","type":"send"}', "{'type':'sync'}", "\0"),
    *('{"type":"\\u0000"}', '{"turn":1e400,"type":"stop"}', '{"type":"stop","turn":٣}'),
]


def seed():
    """Return a fixed seed, unless FUZZ_SEED names another."""
    return int(os.environ.get("FUZZ_SEED", "20261122"))


def frame(rng):
    if rng.random() < 0.15:
        return rng.choice(RAW)
    value = {"type": rng.choice(TYPES if rng.random() < 0.9 else ODD)}
    names = ("client_id", "text", "turn", "seq", "call", "allow", "digest", "reason")
    for key in (*names, "x"):
        if rng.random() < 0.7:
            value[key] = rng.choice(ODD)
    if rng.random() < 0.3:
        value |= {"client_id": f"c{rng.randrange(20)}", "text": rng.choice(TEXTS)}
    text = json.dumps(value, ensure_ascii=rng.random() < 0.5)
    if rng.random() < 0.1:
        at = rng.randrange(len(text))
        text = text[:at] + chr(rng.randrange(0x110000)) + text[at + 1 :]
    return text.encode("utf-8", "replace").decode()


async def answers_to(chat, marker):
    """Return the answers up to the refusal of this unknown command."""
    await chat.command(type="marker", client_id=marker)
    while True:
        event = await chat.event()
        if event.get("client_id") == marker:
            return
        assert event["type"] in {*events.EVENTS, "unread", "ack", "error"}, event
        if event["type"] == "error":
            assert event["detail"].endswith((".", "。")), event


@pytest.mark.parametrize("protocol", ["windowpane.json", ""])
async def test_any_frame_is_answered(
    alice, session, settings, upstream, caplog, protocol
):
    settings.MESSAGES_PER_MINUTE = 0
    settings.PROCESSOR_SHARE_PER_USER = 0
    caplog.set_level(logging.INFO)
    number = seed()
    sys.stdout.write(f"FUZZ_SEED={number}\n")  # shown with a failure
    rng = random.Random(number)
    conversation = await database_sync_to_async(transcript.create_conversation)(alice)
    async with Chat(conversation, session, protocol=protocol) as chat:
        for count in range(ROUNDS):
            text = frame(rng)
            kind = "bytes" if rng.random() < 0.03 else "text"
            value = text.encode() if kind == "bytes" else text
            await chat.socket.send_input({"type": "websocket.receive", kind: value})
            if protocol and count % 10 == 9:
                await answers_to(chat, f"marker-{count}")
        if not protocol:
            await chat.command(type="marker", client_id="marker-end")
            await chat.html("marker-end")
        await chat.command(type="send", client_id="last", text="Still here?")
        if protocol:
            assert (await chat.until("ack", client_id="last"))[-1]["seq"]
        else:
            await chat.html('data-client-id="last"')
    assert [r.getMessage() for r in caplog.records if r.levelname == "ERROR"] == []
    assert not list(await database_sync_to_async(list)(audit.check_turns()))
