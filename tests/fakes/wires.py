"""Replies in the three wire formats, whole and in events.

The fake providers of tests and benches send them to clients that are real.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from uuid import uuid4

CREATED = 1_700_000_000
WIRES = {
    "/chat/completions": "chat",
    "/messages": "messages",
    "/responses": "responses",
    "/responses/compact": "responses",
}
Value = dict[str, Any]


class Call(NamedTuple):
    """A call of a tool, with its arguments as JSON."""

    name: str
    arguments: str
    id: str = ""


class Reply(NamedTuple):
    text: str = ""
    calls: Sequence[Call] = ()
    # Parts of its summary, in responses alone.
    reasoning: Sequence[str] = ()


def find_wire(path: str) -> str:
    """Return the API of this address; any other address has chat completions."""
    path = path.partition("?")[0]
    found = (wire for end, wire in WIRES.items() if path.endswith(end))
    return next(found, "chat")


def list_said(wire: str, body: Value) -> list[tuple[str, str]]:
    """(role, text) of each message of a request; results are those of "tool"."""
    if wire == "chat":
        return [(each["role"], _read(each.get("content"))) for each in body["messages"]]
    if wire == "responses":
        given = body.get("input") or []
        items = (
            [{"role": "user", "content": given}] if isinstance(given, str) else given
        )
        return [
            (each.get("role") or "tool", _read(each.get("content", each.get("output"))))
            for each in items
            if "role" in each or "output" in each
        ]
    return [pair for each in body["messages"] for pair in _list_blocks(each)]


def _list_blocks(message: Value) -> Iterator[tuple[str, str]]:
    content = message["content"]
    blocks = [] if isinstance(content, str) else content
    for block in blocks:
        if block["type"] == "tool_result":
            yield "tool", _read(block.get("content"))
    if text := _read(content):
        yield message["role"], text


def _read(content: Any) -> str:
    if not isinstance(content, list):
        return content or ""
    return "".join(part.get("text") or "" for part in content)


def name_calls(reply: Reply) -> Reply:
    """Calls have ids."""
    calls = [c if c.id else c._replace(id=f"call_{uuid4().hex}") for c in reply.calls]
    return reply._replace(calls=calls)


def write_whole(wire: str, model: str, reply: Reply) -> Value:
    reply = name_calls(reply)
    if wire == "chat":
        message: Value = {"role": "assistant", "content": reply.text or None}
        if reply.calls:
            message["tool_calls"] = [_chat_call(call) for call in reply.calls]
        reason = "tool_calls" if reply.calls else "stop"
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return {**_chat_head(model), "choices": [choice], "usage": CHAT_USAGE}
    if wire == "messages":
        blocks = [{"type": "text", "text": reply.text}] if reply.text else []
        blocks += [
            {**_use(call), "input": json.loads(call.arguments)} for call in reply.calls
        ]
        reason = "tool_use" if reply.calls else "end_turn"
        return {**_message_head(model), "content": blocks, "stop_reason": reason}
    return _response(model, _list_items(reply))


def write_events(wire: str, model: str, reply: Reply) -> Iterator[bytes]:
    reply = name_calls(reply)
    if wire == "chat":
        yield from map(_data, _chat_chunks(model, reply))
        yield b"data: [DONE]\n\n"
        return
    events = _message_events if wire == "messages" else _response_events
    for number, event in enumerate(events(model, reply)):
        if wire == "responses":
            event["sequence_number"] = number
        yield f"event: {event['type']}\n".encode() + _data(event)


def _data(value: Value) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


def split_words(text: str) -> list[str]:
    return re.findall(r"\s*\S+\s*|\s+", text)


CHAT_USAGE = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}


def _chat_head(model: str, kind: str = "chat.completion") -> Value:
    made = {"id": f"chatcmpl-{uuid4().hex}", "object": kind}
    return {**made, "created": CREATED, "model": model}


def _chat_call(call: Call) -> Value:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _chat_chunks(model: str, reply: Reply) -> Iterator[Value]:
    head = _chat_head(model, "chat.completion.chunk")

    def chunk(delta: Value, reason: str | None = None) -> Value:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return {**head, "choices": [choice]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in split_words(reply.text):
        yield chunk({"content": piece})
    for index, call in enumerate(reply.calls):
        yield chunk({"tool_calls": [{**_chat_call(call), "index": index}]})
    yield chunk({}, "tool_calls" if reply.calls else "stop")
    yield {**head, "choices": [], "usage": CHAT_USAGE}


def _message_head(model: str) -> Value:
    return {
        **{"id": f"msg_{uuid4().hex}", "type": "message", "role": "assistant"},
        **{"model": model, "content": [], "stop_reason": None, "stop_sequence": None},
        "usage": {"input_tokens": 9, "output_tokens": 5},
    }


def _use(call: Call) -> Value:
    return {"type": "tool_use", "id": call.id, "name": call.name}


def _message_events(model: str, reply: Reply) -> Iterator[Value]:
    yield {"type": "message_start", "message": _message_head(model)}
    text: Value = {"type": "text", "text": ""}
    parts: list[tuple[Value, list[Value]]] = []
    if reply.text:
        words = split_words(reply.text)
        deltas = [{"type": "text_delta", "text": word} for word in words]
        parts.append((text, deltas))
    for call in reply.calls:
        delta = {"type": "input_json_delta", "partial_json": call.arguments}
        parts.append(({**_use(call), "input": {}}, [delta]))
    for index, (block, deltas) in enumerate(parts):
        at = {"index": index}
        yield {"type": "content_block_start", **at, "content_block": block}
        for delta in deltas:
            yield {"type": "content_block_delta", **at, "delta": delta}
        yield {"type": "content_block_stop", **at}
    reason = "tool_use" if reply.calls else "end_turn"
    ended = {"stop_reason": reason, "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 5}}
    yield {"type": "message_stop"}


def _message_item(text: str, state: str = "completed") -> Value:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    head = {"id": f"msg_{uuid4().hex}", "type": "message", "role": "assistant"}
    return {**head, "status": state, "content": [part] if text else []}


def _call_item(call: Call) -> Value:
    return {
        **{"id": f"fc_{uuid4().hex}", "type": "function_call", "call_id": call.id},
        **{"name": call.name, "arguments": call.arguments, "status": "completed"},
    }


def _response(model: str, items: list[Value]) -> Value:
    used = {"input_tokens": 9, "output_tokens": 5, "total_tokens": 14}
    used |= {"input_tokens_details": {"cached_tokens": 4}}
    used |= {"output_tokens_details": {"reasoning_tokens": 0}}
    return {
        **{"id": f"resp_{uuid4().hex}", "object": "response", "created_at": CREATED},
        **{"status": "completed", "error": None, "incomplete_details": None},
        **{"model": model, "output": items, "parallel_tool_calls": True},
        **{"tools": [], "tool_choice": "auto", "metadata": {}, "usage": used},
        **{"instructions": None, "temperature": 1.0, "top_p": 1.0},
    }


def _list_items(reply: Reply) -> list[Value]:
    items = [_reasoning_item(reply.reasoning)] if reply.reasoning else []
    items += [_message_item(reply.text)] if reply.text else []
    return items + [_call_item(call) for call in reply.calls]


def _reasoning_item(parts: Sequence[str]) -> Value:
    return {
        **{"id": f"rs_{uuid4().hex}", "type": "reasoning", "status": "completed"},
        "summary": [{"type": "summary_text", "text": part} for part in parts],
        "encrypted_content": f"sealed {' '.join(parts)}",
    }


def _response_events(model: str, reply: Reply) -> Iterator[Value]:
    items = _list_items(reply)
    done = _response(model, items)
    begun = {**done, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(items):
        at = {"item_id": item["id"], "output_index": index}
        yield from _item_events(item, at)
        done_at = {"output_index": index, "item": item}
        yield {"type": "response.output_item.done", **done_at}
    yield {"type": "response.completed", "response": done}


def _item_events(item: Value, at: Value) -> Iterator[Value]:
    added = {"type": "response.output_item.added", "output_index": at["output_index"]}
    if item["type"] == "reasoning":
        yield {**added, "item": {**item, "summary": [], "status": "in_progress"}}
        for number, part in enumerate(item["summary"]):
            where = {**at, "summary_index": number}
            head = "response.reasoning_summary"
            yield {"type": f"{head}_part.added", **where, "part": {**part, "text": ""}}
            for word in split_words(part["text"]):
                yield {"type": f"{head}_text.delta", **where, "delta": word}
            text = part["text"]
            yield {"type": f"{head}_text.done", **where, "text": text}
            yield {"type": f"{head}_part.done", **where, "part": part}
        return
    if item["type"] == "function_call":
        yield {**added, "item": {**item, "arguments": "", "status": "in_progress"}}
        kind = "response.function_call_arguments"
        written = item["arguments"]
        yield {"type": f"{kind}.delta", **at, "delta": written}
        yield {"type": f"{kind}.done", **at, "arguments": written, "name": item["name"]}
        return
    yield {**added, "item": {**item, "content": [], "status": "in_progress"}}
    at = {**at, "content_index": 0}
    [part] = item["content"]
    yield {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
    for word in split_words(part["text"]):
        delta = {"delta": word, "logprobs": []}
        yield {"type": "response.output_text.delta", **at, **delta}
    text = {"text": part["text"], "logprobs": []}
    yield {"type": "response.output_text.done", **at, **text}
    yield {"type": "response.content_part.done", **at, "part": part}
