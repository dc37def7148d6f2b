"""Read the messages of `POST /v1/messages`, Anthropic's API."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from ..canonical import (
    Part,
    call_part,
    join_texts,
    media_part,
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

REASONING = frozenset({"thinking", "redacted_thinking"})
MEDIA = frozenset({"image", "document"})


class MessagesReader(EntryReader):
    """Reads messages; tool results are in one message with the user's text."""

    def list_instructions(self, body: Mapping[str, Any]) -> list[str]:
        system = body.get("system")
        parts = join_texts(_read_blocks(system, {}))
        return [part.get("text", "") for part in parts]

    def read_item(self, item: Any, at: int) -> None:
        message = take_object(item, "Each of `messages`")
        role, content = name_role(message.get("role")), message.get("content")
        parts = join_texts(_sort_results(_read_blocks(content, self.calls)))
        self.entries.append(Entry(role, parts, at, at + 1))
        if role == "assistant":
            self.calls = _place_calls(content)


def _place_calls(content: Any) -> dict[str, int]:
    blocks = content if isinstance(content, list) else []
    used = [
        str(block.get("id"))
        for block in blocks
        if isinstance(block, Mapping) and block.get("type") == "tool_use"
    ]
    return {call: place for place, call in enumerate(used)}


def _sort_results(parts: list[Part]) -> list[Part]:
    """Put the results first, in the order of their calls, as the API requires."""
    results = [part for part in parts if "result" in part]
    if not results:
        return parts
    results.sort(key=lambda part: (part["result"] is None, part["result"] or 0))
    return results + [part for part in parts if "result" not in part]


def _read_blocks(content: Any, calls: dict[str, int]) -> list[Part]:
    read = partial(_read_block, calls)
    return read_mixed_parts(content, read, "Each block of `content`")


def _read_block(calls: dict[str, int], block: Mapping[str, Any]) -> Part | None:
    kind = name_kind(block)
    if kind in REASONING:
        return None
    if kind == "text":
        return text_part(str(block.get("text") or ""))
    if kind == "tool_use":
        return call_part(block.get("name"), block.get("input"))
    if kind == "tool_result":
        call = calls.get(str(block.get("tool_use_id")))
        return result_part(call, _read_blocks(block.get("content"), {}))
    if kind in MEDIA and isinstance(source := block.get("source"), Mapping):
        return _read_media(kind, source)
    return other_part(block)


def _read_media(kind: str, source: Mapping[str, Any]) -> Part:
    if source.get("type") == "text":
        return text_part(str(source.get("data") or ""))
    written = source.get("data") or source.get("url")
    return media_part(kind, written) if isinstance(written, str) else other_part(source)
