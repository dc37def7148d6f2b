"""The input items of OpenAI's Responses API, made of messages of chat completions.

They equal those that langchain-openai makes, whichever version is installed, so that a
recorded request can be rebuilt.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Wire = Mapping[str, Any]
# The field of a body that has this form: replies come with what only OpenAI can read.
INCLUDED = {"include": ["reasoning.encrypted_content"]}


def has_items(body: Wire) -> bool:
    """Return True if a body with these fields has items in place of messages."""
    return body.get("include") == INCLUDED["include"]


def convert_body(body: Wire) -> dict[str, Any]:
    """Return the body with items in place of its messages, and flat tools."""
    rest = {name: body[name] for name in body.keys() - {"messages", "tools"}}
    tools = [
        {"type": "function", **each["function"]} for each in body.get("tools") or ()
    ]
    items = {"input": make_items(body["messages"])}
    return rest | items | ({"tools": tools} if tools else {})


def make_items(messages: Sequence[Wire]) -> list[dict[str, Any]]:
    return [item for each in messages for item in _make_items_of(each)]


def _make_items_of(message: Wire) -> Iterator[dict[str, Any]]:
    content = message.get("content")
    if message["role"] == "tool":
        yield {
            "type": "function_call_output",
            "output": content,
            "call_id": message["tool_call_id"],
        }
    elif message["role"] == "assistant":
        yield from _list_reply_items(message)
    else:
        parts = content if isinstance(content, str) else [*map(_convert_part, content)]
        yield {"content": parts, "role": message["role"], "type": "message"}


def _list_reply_items(message: Wire) -> Iterator[dict[str, Any]]:
    """Yield the items of a reply, with its reasoning before the calls it led to."""
    for each in message.get("reasoning_details") or ():
        if each.get("type") == "reasoning" and each.get("encrypted_content"):
            yield dict(each)
    if text := message.get("content"):
        part = {"type": "output_text", "text": text, "annotations": []}
        yield {"type": "message", "role": "assistant", "content": [part]}
    for call in message.get("tool_calls") or ():
        yield {"type": "function_call", **call["function"], "call_id": call["id"]}


def _convert_part(part: Wire) -> dict[str, Any]:
    if part["type"] == "image_url":
        image = part["image_url"]
        detail = {"detail": image["detail"]} if "detail" in image else {}
        return {"type": "input_image", "image_url": image["url"], **detail}
    return {"type": "input_text", "text": part["text"]}
