"""The readers of each API's messages, into one canonical form.

Each returns messages with their place in the body.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any, NamedTuple, Self

from .canonical import (
    Part,
    UnreadableHistoryError,
    call_part,
    join_texts,
    media_part,
    normalize_text,
    other_part,
    result_part,
    text_part,
)

# A developer's message is the system's under its newer name.
SYSTEM = frozenset({"system", "developer"})
# Of `POST /v1/chat/completions`.
RESULT_ROLES = frozenset({"tool", "function"})
# Of `POST /v1/messages`, Anthropic's API.
REASONING = frozenset({"thinking", "redacted_thinking"})
BLOCK_MEDIA = frozenset({"image", "document"})
# Of `POST /v1/responses`.
REFERENCE, TRIGGER = "item_reference", "compaction_trigger"
CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
RESULT_TYPES = frozenset({"function_call_output", "custom_tool_call_output"})
TEXTS = {"input_text": "text", "output_text": "text", "text": "text"}
TEXTS |= {"refusal": "refusal"}
ITEM_MEDIA = {"input_image": "image", "input_file": "file", "input_audio": "audio"}


class Entry(NamedTuple):
    """A canonical message, and its span in the list of the body: [start:end]."""

    role: str
    parts: list[Part]
    start: int
    end: int


# Items between two pauses, and the results and calls a reader may hold back there.
PAUSE_AFTER, MOST_WAITING = 32, 64


class EntryReader:
    """Reads the items of one API's list into entries, one by one."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        # Results that no other item has followed yet, and indexes of calls by id.
        self.results: list[Entry] = []
        self.calls: dict[str, int] = {}

    def list_instructions(self, _body: Mapping[str, Any]) -> list[str]:
        """Return the instructions that are not in the list."""
        return []

    def list_items(self, body: Mapping[str, Any]) -> list[Any]:
        return take_list(body, "messages")

    def list_reply(self, reply: Mapping[str, Any]) -> list[Entry]:
        return self.read([{**reply, "role": "assistant"}])

    def read_item(self, item: Any, at: int) -> None:
        raise NotImplementedError

    def end(self, at: int) -> None:
        """End the list after its first `at` items."""
        self.end_results()

    def end_results(self) -> None:
        if self.results:
            # In the order of their calls; those of unknown calls come last.
            self.entries += sorted(self.results, key=_find_place_of_call)
            self.results = []

    def read(self, items: Sequence[Any]) -> list[Entry]:
        self.read_on(items, 0)
        return self.entries

    def read_on(self, items: Sequence[Any], first: int) -> list["Pause"]:
        """Read the items from `first` on; return the points to resume from."""
        pauses: list[Pause] = []
        after = first + PAUSE_AFTER
        for at, item in enumerate(items[first:], first):
            self.read_item(item, at)
            if at + 1 >= after and self.count_waiting() <= MOST_WAITING:
                waiting = self.copy_waiting()
                pauses.append(Pause(at + 1, len(self.entries), waiting))
                after = at + 1 + PAUSE_AFTER
        self.end(len(items))
        return pauses

    def count_waiting(self) -> int:
        return len(self.results) + len(self.calls)

    def copy_waiting(self) -> Self:
        """Copy the state that the next item depends on, without the entries."""
        other = copy(self)
        other.entries = []
        other.results, other.calls = [*self.results], {**self.calls}
        return other


class Pause(NamedTuple):
    """A point between two items: the items before it, and the entries made of them."""

    items: int
    entries: int
    reader: EntryReader


def _find_place_of_call(entry: Entry) -> tuple[bool, int]:
    call = entry.parts[0]["result"]
    return call is None, call or 0


def take_list(body: Mapping[str, Any], name: str) -> list[Any]:
    value = body.get(name)
    if not isinstance(value, list):
        raise UnreadableHistoryError(f"`{name}` has to be a list.")
    return value


def take_object(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise UnreadableHistoryError(f"{name} has to be an object.")
    return value


def name_role(role: Any) -> str:
    if not isinstance(role, str) or not role:
        raise UnreadableHistoryError("A message has no `role`.")
    return "system" if role in SYSTEM else role


def name_kind(value: Mapping[str, Any]) -> str:
    """Return the object's `type`, or "" if it is no text."""
    kind = value.get("type")
    return kind if isinstance(kind, str) else ""


def read_mixed_parts(
    content: Any,
    read_part: Callable[[Mapping[str, Any]], Part | None],
    name: str = "Each part of `content`",
) -> list[Part]:
    """Return the parts of a text, or of a list of texts and objects.

    `read_part` reads the objects of one API; None: it is no part. `name`: of these
    objects, for errors.
    """
    if content is None:
        return []
    if isinstance(content, str):
        return [text_part(content)]
    if not isinstance(content, list):
        return [other_part(content)]
    read = (
        text_part(each) if isinstance(each, str) else read_part(take_object(each, name))
        for each in content
        if each is not None
    )
    return [part for part in read if part is not None]


class ChatReader(EntryReader):
    """Reads messages, and sorts adjacent results by the order of their calls."""

    def read_item(self, item: Any, at: int) -> None:
        message = take_object(item, "Each of `messages`")
        role = name_role(message.get("role"))
        if role in RESULT_ROLES:
            self.results.append(_read_tool_result(message, self.calls, at))
            return
        self.end_results()
        self.entries.append(Entry(role, read_parts(message), at, at + 1))
        if asked := message.get("tool_calls"):
            self.calls = _place_calls(asked)


def _place_calls(calls: Any) -> dict[str, int]:
    """Return the index of each call of a message by its id."""
    calls = calls if isinstance(calls, list) else []
    ids = [each.get("id") if isinstance(each, Mapping) else None for each in calls]
    return {str(each): place for place, each in enumerate(ids) if each is not None}


def _read_tool_result(
    message: Mapping[str, Any], calls: dict[str, int], at: int
) -> Entry:
    call = calls.get(str(message.get("tool_call_id")))
    parts = read_mixed_parts(message.get("content"), _read_chat_part)
    return Entry("tool", [result_part(call, parts)], at, at + 1)


def read_parts(message: Mapping[str, Any]) -> list[Part]:
    """Return the parts of a message.

    Reasoning (`reasoning`, `reasoning_content`) and `name` are not read.
    """
    if len(message) == 2 and isinstance(message.get("content"), str):
        # A fast path: most messages have only a role and one text.
        text = normalize_text(message["content"])
        return [text_part(text)] if text else []
    parts = read_mixed_parts(message.get("content"), _read_chat_part)
    if refusal := message.get("refusal"):
        parts.append(text_part(str(refusal)))
    called = message.get("tool_calls") or []
    if legacy := message.get("function_call"):
        called = [{"function": legacy}]
    for call in called if isinstance(called, list) else [called]:
        parts.append(_read_chat_call(call))
    return join_texts(parts)


def _read_chat_call(call: Any) -> Part:
    call = take_object(call, "Each of `tool_calls`")
    if isinstance(function := call.get("function"), Mapping):
        return call_part(function.get("name"), function.get("arguments"))
    if isinstance(custom := call.get("custom"), Mapping):
        return call_part(custom.get("name"), custom.get("input"))
    return other_part(call)


def _read_chat_part(part: Mapping[str, Any]) -> Part:
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
            self.calls = _place_used_tools(content)


def _place_used_tools(content: Any) -> dict[str, int]:
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
    if kind in BLOCK_MEDIA and isinstance(source := block.get("source"), Mapping):
        return _read_media(kind, source)
    return other_part(block)


def _read_media(kind: str, source: Mapping[str, Any]) -> Part:
    if source.get("type") == "text":
        return text_part(str(source.get("data") or ""))
    written = source.get("data") or source.get("url")
    return media_part(kind, written) if isinstance(written, str) else other_part(source)


class ResponsesItemReader(EntryReader):
    """Reads items into messages.

    Texts and calls of the model between two inputs are one message, as they are one
    reply. Results are in the order of their calls.
    """

    def __init__(self) -> None:
        super().__init__()
        self.said: list[Part] = []
        # First item of the model's message, including its reasoning.
        self.said_from: int | None = None

    def list_instructions(self, body: Mapping[str, Any]) -> list[str]:
        instructions = body.get("instructions")
        return [instructions.rstrip()] if isinstance(instructions, str) else []

    def list_items(self, body: Mapping[str, Any]) -> list[Any]:
        """Return the items of the input; a text is a message of the user."""
        if isinstance(text := body.get("input"), str):
            return [{"role": "user", "content": text}]
        return take_list(body, "input")

    def list_reply(self, reply: Mapping[str, Any]) -> list[Entry]:
        return self.read(take_list(reply, "output"))

    def end(self, at: int) -> None:
        self.end_reply(at)
        self.end_results()

    def count_waiting(self) -> int:
        return super().count_waiting() + len(self.said)

    def copy_waiting(self) -> Self:
        other = super().copy_waiting()
        other.said = [*self.said]
        return other

    def read_item(self, item: Any, at: int) -> None:
        item = take_object(item, "Each item")
        is_named = item.get("id") and "role" not in item
        kind = name_kind(item) or (REFERENCE if is_named else "message")
        if kind == TRIGGER:
            # It asks the provider for its own summary, and says nothing.
            return
        if kind == "reasoning":
            self.said_from = at if self.said_from is None else self.said_from
            return
        if kind in RESULT_TYPES:
            self.end_reply(at)
            call = self.calls.get(str(item.get("call_id")))
            part = result_part(
                call, read_mixed_parts(item.get("output"), _read_item_part)
            )
            self.results.append(Entry("tool", [part], at, at + 1))
            return
        role = name_role(item.get("role")) if kind == "message" else "assistant"
        self.end_results()
        if role == "assistant":
            self.say(item, kind, at)
            return
        self.end_reply(at)
        parts = join_texts(read_mixed_parts(item.get("content"), _read_item_part))
        self.entries.append(Entry(role, parts, at, at + 1))

    def say(self, item: Mapping[str, Any], kind: str, at: int) -> None:
        """Add an item of the model."""
        if not self.said:
            self.calls = {}
        self.said_from = at if self.said_from is None else self.said_from
        if kind == "message":
            self.said += read_mixed_parts(item.get("content"), _read_item_part)
        elif kind in CALLS:
            self.calls[str(item.get("call_id"))] = len(self.calls)
            self.said.append(call_part(item.get("name"), item.get(CALLS[kind])))
        elif kind == REFERENCE:
            self.said.append({"reference": str(item.get("id"))})
        else:
            self.said.append(other_part(item))

    def end_reply(self, at: int) -> None:
        if self.said:
            parts = join_texts(self.said)
            self.entries.append(Entry("assistant", parts, self.said_from or 0, at))
            self.said = []
        self.said_from = None


def _read_item_part(part: Mapping[str, Any]) -> Part:
    kind = name_kind(part)
    if kind in TEXTS:
        return text_part(str(part.get(TEXTS[kind]) or ""))
    if kind in ITEM_MEDIA:
        for name in ("image_url", "file_data", "data", "file_url"):
            if isinstance(written := part.get(name), str):
                return media_part(ITEM_MEDIA[kind], written)
    return other_part(part)
