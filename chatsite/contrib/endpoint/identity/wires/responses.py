"""Read the items of `POST /v1/responses`; a reply's items are one message."""

from collections.abc import Mapping
from typing import Any, Self

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
    take_list,
    take_object,
)

REFERENCE, TRIGGER = "item_reference", "compaction_trigger"
CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})
TEXTS = {"input_text": "text", "output_text": "text", "text": "text"}
TEXTS |= {"refusal": "refusal"}
MEDIA = {"input_image": "image", "input_file": "file", "input_audio": "audio"}


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
        if kind in RESULTS:
            self.end_reply(at)
            call = self.calls.get(str(item.get("call_id")))
            part = result_part(call, read_mixed_parts(item.get("output"), _read_part))
            self.results.append(Entry("tool", [part], at, at + 1))
            return
        role = name_role(item.get("role")) if kind == "message" else "assistant"
        self.end_results()
        if role == "assistant":
            self.say(item, kind, at)
            return
        self.end_reply(at)
        parts = join_texts(read_mixed_parts(item.get("content"), _read_part))
        self.entries.append(Entry(role, parts, at, at + 1))

    def say(self, item: Mapping[str, Any], kind: str, at: int) -> None:
        """Add an item of the model."""
        if not self.said:
            self.calls = {}
        self.said_from = at if self.said_from is None else self.said_from
        if kind == "message":
            self.said += read_mixed_parts(item.get("content"), _read_part)
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


def _read_part(part: Mapping[str, Any]) -> Part:
    kind = name_kind(part)
    if kind in TEXTS:
        return text_part(str(part.get(TEXTS[kind]) or ""))
    if kind in MEDIA:
        for name in ("image_url", "file_data", "data", "file_url"):
            if isinstance(written := part.get(name), str):
                return media_part(MEDIA[kind], written)
    return other_part(part)
