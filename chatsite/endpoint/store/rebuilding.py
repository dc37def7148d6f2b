"""What a client sent for a reply, put together again and proved by the hash of its
bytes."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import BaseMessage, SystemMessage

from chatsite.endpoint.wires import find_wire_by_name
from memory.context import Built, View
from memory.engine.compose import Context, Section
from memory.models import Conversation, ModelCall, read_langchain
from memory.ranges import Ranges, in_ranges

from .pieces import rebuild_body
from .sent_forms import read_changed_texts

KEY = "client"


def rebuild_request(call: ModelCall) -> Built:
    raw = rebuild_body(call.conversation, call.refs[KEY])
    body = _read_body(raw)
    wire = find_wire_by_name(call.refs[KEY]["wire"])
    sections = tuple(_make_sent_sections(call, wire.read_instructions(body)))
    context = Context(sections)
    return Built(
        context,
        call.refs,
        context.messages,
        wire.list_sent(body),
        hashlib.sha256(raw).hexdigest(),
        call.tokens_estimated,
        _make_sent_view(context, call),
    )


def _make_sent_view(context: Context, call: ModelCall) -> View:
    """For what is drawn of requests that are not sent yet: a client's are."""
    newest = context.section("newest")
    return View(
        context,
        summaries=[],
        pinned=[],
        window=[*context.section("window")],
        recalled=[],
        newest=newest[0] if newest else None,
        memory_version=call.conversation.memory_version,
        steps=[*context.section("steps")],
    )


def read_sent_body(call: ModelCall) -> Mapping[str, Any]:
    """The body as an object; {} where a piece of it was deleted."""
    return _read_body(rebuild_body(call.conversation, call.refs[KEY]))


def _read_body(raw: bytes) -> Mapping[str, Any]:
    try:
        body = json.loads(raw)
    except ValueError:  # a piece of it was deleted
        return {}
    return body if isinstance(body, dict) else {}


def _make_sent_sections(call: ModelCall, instructions: str) -> list[Section]:
    refs, changed = call.refs, read_changed_texts(call)
    newest = [[refs["newest"]] * 2] if refs["newest"] else []
    found: list[Section] = []
    if instructions:
        found.append(Section("system", (SystemMessage(instructions),)))
    for kind, ranges in (
        ("window", refs["window"]),
        ("newest", newest),
        ("steps", refs.get("steps", ())),
    ):
        messages = _read_sent_rows(call.conversation, ranges)
        for message in messages:
            # In the words of the client.
            if texts := changed.get(int(message.id)):
                message.content = texts[1]
        if messages:
            found.append(Section(kind, tuple(messages)))
    return found


def _read_sent_rows(conversation: Conversation, ranges: Ranges) -> list[BaseMessage]:
    if not ranges:
        return []
    rows = conversation.messages.filter(in_ranges(ranges), deleted_at=None)
    return read_langchain(rows.order_by("seq"))
