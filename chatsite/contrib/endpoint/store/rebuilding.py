"""Rebuilding a client's request, proved by the hash of its bytes."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from langchain_core.messages import BaseMessage, SystemMessage

from chatsite.contrib.endpoint.apis import find_api_by_name
from chatsite.contrib.endpoint.apis.api import list_declared_tools
from chatsite.contrib.endpoint.bounding.preamble import read_preamble, write_context
from memory import prompts
from memory.context import ConversationView, RequestContext
from memory.engine.compose import Context, Section, dump_wire
from memory.engine.tokens import Parts, count_parts, count_text, share_out
from memory.models import Conversation, ModelCall, Prompt, read_langchain
from memory.ranges import Ranges, in_ranges
from memory.rules import rule_source
from memory.view import rebuilding

from . import held_state
from .body_pieces import read_stored_object, rebuild_body
from .held_state import KEY
from .sent_forms import read_changed_texts


def rebuild_request(call: ModelCall) -> RequestContext:
    refs = call.refs
    preamble, raw = _rebuild(call)
    body = read_stored_object(raw)
    api = find_api_by_name(refs[KEY]["wire"])
    instructions = api.read_instructions(body)
    system = (Section("system", (SystemMessage(instructions),)),)
    said = _make_sent_sections(call)
    sections = (*(system if instructions else ()), *preamble.sections, *said)
    context = Context(sections)
    held = refs[KEY].get("held")
    apart = held_state.list_parts(refs)
    # Its tokens are those of the list; what the history changes is counted there.
    declared, tools = list_declared_tools(body), api.list_tools(body)
    offered = count_text(dump_wire(declared)) if declared else 0
    rows = call.conversation.summaries.filter(version__in=refs["summaries"])
    texts = Prompt.objects.in_bulk(prompts.named_in(refs)) if refs["fence"] else {}
    return RequestContext(
        context,
        refs,
        context.messages,
        api.list_sent(body),
        hashlib.sha256(raw).hexdigest(),
        call.tokens_estimated,
        (*apart, *_list_sent_parts(call, context, offered, apart)),
        tools,
        texts={name: row.text for name, row in texts.items()},
        summaries=[*rows.order_by("first_seq")] if refs["summaries"] else [],
        read_held=partial(held_state.rebuild_held, call) if held else None,
        body=raw,
    )


def _list_sent_parts(
    call: ModelCall, context: Context, offered: int, apart: Parts
) -> Parts:
    """Return the parts of what was sent; those in `apart` are held by the provider."""
    if not apart:
        return rebuilding.list_parts(call, context, offered)
    sent = call.tokens_estimated - sum(count for _, count in apart)
    return share_out(count_parts(context.sections, tools=offered), sent)


def rebuild_as_next(call: ModelCall) -> RequestContext:
    """Rebuild the request with the view that pages draw of unsent requests."""
    built = rebuild_request(call)
    newest = built.context.get_section("newest")
    sent = call.refs.get("rules", [])
    standing = (
        rule_source.find_source("rules").list_standing(call.conversation)
        if sent
        else []
    )
    view = ConversationView(
        built.context,
        summaries=built.summaries,
        pinned=[],
        window=[*built.context.get_section("window")],
        recalled=[],
        newest=newest[0] if newest else None,
        memory_version=call.conversation.memory_version,
        steps=[*built.context.get_section("steps")],
        rules=[rule for rule in standing if rule.ref in sent],
    )
    return replace(built, view=view)


def read_sent_bytes(call: ModelCall) -> bytes:
    """Return the body as it was sent, without pieces that were deleted."""
    return _rebuild(call)[1]


def read_sent_body(call: ModelCall) -> Mapping[str, Any]:
    """Return the body as an object; {} where a piece of it was deleted."""
    return read_stored_object(read_sent_bytes(call))


def _rebuild(call: ModelCall) -> tuple[Context, bytes]:
    """Return the messages before the client's own, and the whole body."""
    # Without summaries, all messages are the client's own.
    preamble = read_preamble(call) if call.refs["fence"] else Context(())
    written = write_context(preamble)
    return preamble, rebuild_body(call.conversation, call.refs[KEY], written)


def _make_sent_sections(call: ModelCall) -> list[Section]:
    refs, changed = call.refs, read_changed_texts(call)
    newest = [[refs["newest"]] * 2] if refs["newest"] else []
    found: list[Section] = []
    for kind, ranges in (
        ("window", refs["window"]),
        ("newest", newest),
        ("steps", refs.get("steps", ())),
    ):
        messages = _read_sent_rows(call.conversation, ranges)
        for message in messages:
            # The text as the client sent it.
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
