"""Read the messages of `POST /v1/chat/completions`."""

from collections.abc import Mapping
from typing import Any

from ..canonical import (
    Part,
    call_part,
    join_texts,
    media_part,
    normalize_text,
    other_part,
    result_part,
    text_part,
)
from .entry import (
    Entry,
    EntryReader,
    name_kind,
    name_role,
    read_mixed_parts,
    take_object,
)

RESULTS = frozenset({"tool", "function"})


class ChatReader(EntryReader):
    """Reads messages, and sorts adjacent results by the order of their calls."""

    def read_item(self, item: Any, at: int) -> None:
        message = take_object(item, "Each of `messages`")
        role = name_role(message.get("role"))
        if role in RESULTS:
            self.results.append(_read_result(message, self.calls, at))
            return
        self.end_results()
        self.entries.append(Entry(role, read_parts(message), at, at + 1))
        if asked := message.get("tool_calls"):
            self.calls = place_calls(asked, "id")


def place_calls(calls: Any, name: str) -> dict[str, int]:
    """Return the index of each call of a message by its id."""
    calls = calls if isinstance(calls, list) else []
    ids = [each.get(name) if isinstance(each, Mapping) else None for each in calls]
    return {str(each): place for place, each in enumerate(ids) if each is not None}


def _read_result(message: Mapping[str, Any], calls: dict[str, int], at: int) -> Entry:
    call = calls.get(str(message.get("tool_call_id")))
    parts = read_mixed_parts(message.get("content"), _read_part)
    return Entry("tool", [result_part(call, parts)], at, at + 1)


def read_parts(message: Mapping[str, Any]) -> list[Part]:
    """Return the parts of a message.

    Reasoning (`reasoning`, `reasoning_content`) and `name` are not read.
    """
    if len(message) == 2 and isinstance(message.get("content"), str):
        # A fast path: most messages have only a role and one text.
        text = normalize_text(message["content"])
        return [text_part(text)] if text else []
    parts = read_mixed_parts(message.get("content"), _read_part)
    if refusal := message.get("refusal"):
        parts.append(text_part(str(refusal)))
    called = message.get("tool_calls") or []
    if legacy := message.get("function_call"):
        called = [{"function": legacy}]
    for call in called if isinstance(called, list) else [called]:
        parts.append(_read_call(call))
    return join_texts(parts)


def _read_call(call: Any) -> Part:
    call = take_object(call, "Each of `tool_calls`")
    if isinstance(function := call.get("function"), Mapping):
        return call_part(function.get("name"), function.get("arguments"))
    if isinstance(custom := call.get("custom"), Mapping):
        return call_part(custom.get("name"), custom.get("input"))
    return other_part(call)


def _read_part(part: Mapping[str, Any]) -> Part:
    kind = name_kind(part)
    if kind in ("text", "refusal"):
        return text_part(str(part.get(kind) or ""))
    inner = part.get(kind)
    if kind == "image_url":
        url = inner.get("url") if isinstance(inner, Mapping) else inner
        return media_part("image", str(url or ""))
    if kind == "input_audio" and isinstance(inner, Mapping):
        return media_part("audio", str(inner.get("data") or ""))
    if kind == "file" and isinstance(inner, Mapping) and inner.get("file_data"):
        return media_part("file", str(inner["file_data"]))
    return other_part(part)
