"""Write histories as clients of three APIs write them, and read the answers."""

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

PATHS = {
    "chat": "/chat/completions",
    "messages": "/messages",
    "responses": "/responses",
}
PARAMETERS = {"type": "object", "properties": {"place": {"type": "string"}}}


@dataclass(frozen=True, slots=True)
class Call:
    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Said:
    """A message: a text, tool calls, or their results."""

    role: str
    text: str = ""
    calls: tuple[Call, ...] = ()
    # The id and result of each of the calls before.
    results: tuple[tuple[str, str], ...] = ()
    image: bytes = b""
    # Number of pieces in which a client writes its text.
    pieces: int = 0
    # The ids of a served response and of its items.
    response: str = ""
    items: tuple[str, ...] = ()

    @property
    def known(self) -> tuple[Any, ...]:
        """The content that identifies the message, whatever the client changes."""
        calls = tuple((call.name, call.arguments) for call in self.calls)
        return self.role, self.text, calls, tuple(r[1] for r in self.results)


@dataclass(frozen=True, slots=True)
class Request:
    """A body and its headers."""

    wire: str
    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)
    # The body that is sent once the provider no longer has the thread of the other.
    whole: dict[str, Any] | None = None


def write_body(
    wire: str, system: str, history: Sequence[Said], model: str, tool: str = "weather"
) -> Any:
    """Return the body of a request that is not streamed."""
    return WRITERS[wire](system, history, model, tool)


def name_served(body: dict[str, Any], history: Sequence[Said], habit: str) -> None:
    """Put ids in place of served replies.

    With `references`, ids replace the items of replies; with `previous`, the id of the
    last response replaces all messages up to it.
    """
    if habit == "previous":
        places = [n for n, said in enumerate(history) if said.response]
        if places:
            body["previous_response_id"] = history[places[-1]].response
            history = history[places[-1] + 1 :]
    body["input"] = items = []
    for said in history:
        named = [{"type": "item_reference", "id": each} for each in said.items]
        items += (habit == "references" and named) or write_items(said)


def name_thread(body: dict[str, Any], history: Sequence[Said]) -> Any:
    """Continue the thread of the last served reply, or begin one.

    Return the body with the whole history, if the other has only the end of it.
    """
    places = [n for n, said in enumerate(history[:-1]) if said.response]
    body["thread"] = {"type": "create"}
    if not places:
        return None
    whole = {**body}
    named = history[places[-1]].response
    body["thread"] = {"type": "continue", "previous_message_id": named}
    body["messages"] = body["messages"][places[-1] + 1 :]
    del body["system"], body["tools"]
    return whole


def cut_text(said: Said, make: Callable[[str], Any]) -> Any:
    """Return the text as a list of parts, or None if it is not split."""
    if not said.pieces:
        return None
    size = -(-len(said.text) // said.pieces) or 1
    starts = range(0, len(said.text), size)
    return [make(said.text[start : start + size]) for start in starts]


def _write_chat(
    system: str, history: Sequence[Said], model: str, tool: str
) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": system}]
    for said in history:
        messages += _write_chat_message(said)
    function = {"name": tool, "parameters": PARAMETERS}
    tools = [{"type": "function", "function": function}]
    return {"model": model, "messages": messages, "tools": tools}


def _write_chat_message(said: Said) -> list[dict[str, Any]]:
    if said.results:
        return [
            {"role": "tool", "tool_call_id": call, "content": text}
            for call, text in said.results
        ]
    content: Any = cut_text(said, lambda text: {"type": "text", "text": text})
    message: dict[str, Any] = {"role": said.role, "content": content or said.text}
    if said.image:
        url = f"data:image/png;base64,{base64.b64encode(said.image).decode()}"
        image: Any = {"type": "image_url", "image_url": {"url": url}}
        message["content"] = [{"type": "text", "text": said.text}, image]
    if said.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in said.calls
        ]
    return [message]


def _write_messages(
    system: str, history: Sequence[Said], model: str, tool: str
) -> dict[str, Any]:
    return {
        "model": model,
        "max_tokens": 500,
        "system": system,
        "tools": [{"name": tool, "input_schema": PARAMETERS}],
        "messages": [_write_turn(said) for said in history],
    }


def _write_turn(said: Said) -> dict[str, Any]:
    if said.results:
        blocks = [
            {"type": "tool_result", "tool_use_id": call, "content": text}
            for call, text in said.results
        ]
        return {"role": "user", "content": blocks}
    parts = cut_text(said, lambda text: {"type": "text", "text": text})
    if not said.calls and not said.image:
        return {"role": said.role, "content": parts or said.text}
    blocks = parts or ([{"type": "text", "text": said.text}] if said.text else [])
    if said.image:
        data = base64.b64encode(said.image).decode()
        source = {"type": "base64", "media_type": "image/png", "data": data}
        image: Any = {"type": "image", "source": source}
        blocks.append(image)
    for call in said.calls:
        used: dict[str, Any] = {"id": call.id, "name": call.name}
        used["input"] = json.loads(call.arguments)
        blocks.append({"type": "tool_use", **used})
    return {"role": said.role, "content": blocks}


def _write_responses(
    system: str, history: Sequence[Said], model: str, tool: str
) -> dict[str, Any]:
    items: list[dict[str, Any]] = []
    for said in history:
        items += write_items(said)
    tools = [{"type": "function", "name": tool, "parameters": PARAMETERS}]
    return {"model": model, "instructions": system, "input": items, "tools": tools}


def write_items(said: Said) -> list[dict[str, Any]]:
    if said.results:
        return [
            {"type": "function_call_output", "call_id": call, "output": text}
            for call, text in said.results
        ]
    kind = "output_text" if said.role == "assistant" else "input_text"
    content: Any = cut_text(said, lambda text: {"type": kind, "text": text})
    if said.image:
        url = f"data:image/png;base64,{base64.b64encode(said.image).decode()}"
        content = [{"type": kind, "text": said.text}]
        content.append({"type": "input_image", "image_url": url})
    items: list[dict[str, Any]] = []
    if said.text or not said.calls:
        items = [{"role": said.role, "content": content or said.text}]
    for call in said.calls:
        named = {"name": call.name, "arguments": call.arguments}
        items.append({"type": "function_call", "call_id": call.id, **named})
    return items


WRITERS = {
    "chat": _write_chat,
    "messages": _write_messages,
    "responses": _write_responses,
}


def read_answer(wire: str, body: dict[str, Any]) -> Said:
    """Return the reply as the client keeps it."""
    if wire == "chat":
        message = body["choices"][0]["message"]
        calls = tuple(
            Call(each["id"], each["function"]["name"], each["function"]["arguments"])
            for each in message.get("tool_calls") or ()
        )
        return Said("assistant", message.get("content") or "", calls)
    if wire == "messages":
        blocks = body["content"]
        text = "".join(each["text"] for each in blocks if each["type"] == "text")
        calls = tuple(
            Call(each["id"], each["name"], json.dumps(each["input"]))
            for each in blocks
            if each["type"] == "tool_use"
        )
        return Said("assistant", text, calls, response=body.get("id", ""))
    items = body["output"]
    texts = [each["content"] for each in items if each["type"] == "message"]
    text = "".join(part.get("text", "") for parts in texts for part in parts)
    calls = tuple(
        Call(each["call_id"], each["name"], each["arguments"])
        for each in items
        if each["type"] == "function_call"
    )
    ids = tuple(each.get("id", "") for each in items)
    return Said("assistant", text, calls, response=body.get("id", ""), items=ids)


def write_answer(wire: str, reply: Said) -> dict[str, Any]:
    """Return the reply as a server sends it, without fields that no client reads."""
    if wire == "chat":
        (message,) = _write_chat_message(reply)
        return {"choices": [{"message": message}]}
    if wire == "messages":
        content = _write_turn(replace(reply, pieces=1 if reply.text else 0))["content"]
        return {"role": "assistant", "content": content}
    items = write_items(replace(reply, pieces=1 if reply.text else 0))
    return {"output": [{"type": "message", **item} for item in items]}


def rename_calls(history: Sequence[Said], random: Random) -> list[Said]:
    """Give all calls other ids, and shuffle parallel results."""
    names: dict[str, str] = {}
    renamed = []
    for said in history:
        for call in said.calls:
            names[call.id] = f"call_{random.getrandbits(64):016x}"
        results = [(names.get(call, call), text) for call, text in said.results]
        random.shuffle(results)
        calls = tuple(replace(call, id=names[call.id]) for call in said.calls)
        said = replace(said, calls=calls, results=tuple(results))
        renamed.append(replace(said, response="", items=()))
    return renamed
