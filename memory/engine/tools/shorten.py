"""Shortened copies of messages for the model's view. The messages stay as they are."""

import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from ..tokens import TokenCounter
from . import rounds

KEPT_CHARS = 20
ARGUMENT_MARK = "...(argument truncated)"
# The lengths to which texts are cut, in characters: the longest that fits. They are
# few, so that a text that was shortened once mostly stays as it is.
LEVELS = (8000, 2000, 500, 120, 0)
BEGINNINGS = LEVELS[:-1]
UNREAD_LEVELS = LEVELS[:-2]
ARGUMENT_KEYS = ("args", "input", "arguments", "partial_json")

Part = Literal["result", "arguments", "words"]
# The number of characters to which each part of a message was cut.
Levels = dict[Part, int]
Cut = Callable[[str], str]
# Returns the cuts in their order: the part, the index of the message, the characters.
Order = Callable[[Sequence[BaseMessage]], Iterable[tuple[Part, int, int]]]


def clip_tool_args(
    messages: Sequence[BaseMessage],
    limit: int,
    *,
    mark: str = ARGUMENT_MARK,
    tools: Container[str] | None = None,
) -> list[BaseMessage]:
    """Return the messages with texts over `limit` characters cut in tool calls.

    `tools`: the names of the tools; None means all.
    """

    def cut(text: str) -> str:
        return text[:KEPT_CHARS] + mark if len(text) > limit else text

    return [
        _change_arguments(message, lambda args: map_strings(args, cut), tools)
        for message in messages
    ]


def cut_down(
    messages: Sequence[BaseMessage],
    excess: int,
    count_tokens: TokenCounter,
    places: Mapping[int, int],
    order: Iterable[tuple[Part, int, int]],
) -> tuple[list[BaseMessage], list[Levels]]:
    """Return the messages with `excess` tokens less, and how each was cut.

    They are cut in this order as far as possible; cut_message() repeats each cut.
    `places` maps the `id()` of a message to its number.
    """
    shown = list(messages)
    levels: list[Levels] = [{} for _ in messages]
    for part, index, chars in order:
        if excess <= 0:
            break
        wanted = levels[index] | {part: chars}
        message = messages[index]
        shorter = cut_message(message, wanted, places.get(id(message)))
        saved = count_tokens([shown[index]]) - count_tokens([shorter])
        if saved > 0:
            shown[index], levels[index] = shorter, wanted
            excess -= saved
    return shown, levels


def in_window(messages: Sequence[BaseMessage]) -> Iterator[tuple[Part, int, int]]:
    """Yield the cuts for finished turns: first the results, then the arguments."""
    results = [n for n, each in enumerate(messages) if isinstance(each, ToolMessage)]
    calls = [n for n, each in enumerate(messages) if getattr(each, "tool_calls", None)]
    parts: list[tuple[Part, list[int]]] = [("result", results), ("arguments", calls)]
    for part, indices in parts:
        yield from ((part, index, chars) for chars in LEVELS for index in indices)


def order_turn_cuts(
    messages: Sequence[BaseMessage], *, newest: Sequence[int] = ()
) -> Iterator[tuple[Part, int, int]]:
    """Yield the cuts for the running turn: results, arguments, then the model's words.

    The oldest first. Of the newest round, which the model has not read, only long
    results; with `newest`, sizes in characters, all of it.
    """
    answers = [n for n, each in enumerate(messages) if isinstance(each, AIMessage)]
    results = [n for n, each in enumerate(messages) if isinstance(each, ToolMessage)]
    last = answers[-1] if answers else 0
    read = [n for n in results if n < last]
    unread = results[len(read) :]
    stages: list[tuple[Part, list[int], Sequence[int]]] = [
        ("result", read, LEVELS),
        ("result", unread, newest or UNREAD_LEVELS),
        ("arguments", answers if newest else answers[:-1], LEVELS),
        ("words", answers if newest else answers[:-1], LEVELS),
    ]
    for part, indices, levels in stages:
        yield from ((part, index, chars) for chars in levels for index in indices)


def cut_message(
    message: BaseMessage, levels: Mapping[Part, int], place: int | None
) -> BaseMessage:
    """Return the message with its parts cut to these lengths.

    `place` is its number.
    """
    where = f"message {place} of this thread" if place else "in this thread"

    def cut_to(chars: int) -> Cut:
        def cut(text: str) -> str:
            if len(text) <= chars:
                return text
            of = f" of {len(text):,}" if chars else ""
            left_out = f"{len(text) - chars:,}{of} characters are left out"
            return f"{text[:chars]}...({left_out}; the whole is {where})"

        return cut

    for part in ("result", "words"):
        if part in levels and len(message.text) > levels[part]:
            message = _set_text(message, cut_to(levels[part])(message.text))
    if "arguments" in levels:
        chars = levels["arguments"]
        shorter_text = cut_to(chars)

        def cut_all(args: Mapping[str, Any]) -> Mapping[str, Any]:
            shorter = map_strings(args, shorter_text)
            size = len(json.dumps(shorter, default=repr))
            # Many short values, or other ones than texts.
            is_long = size > max(2 * chars, 2 * len(shorter_text("x" * (chars + 1))))
            return (
                {"left_out": shorter_text(json.dumps(args, default=repr))}
                if is_long
                else shorter
            )

        message = _change_arguments(message, cut_all)
    return message


def add_note(message: BaseMessage, note: str) -> BaseMessage:
    return _set_text(message, f"{message.text} {note}".lstrip())


def _set_text(message: BaseMessage, text: str) -> BaseMessage:
    """Return the message with another text, in the place of its first one.

    Blocks without text stay: a picture has an address, and calls have their results.
    """
    content: Any = text
    if not isinstance(message.content, str):
        is_text = [
            isinstance(block, str) or block.get("type") == "text"
            for block in message.content
        ]
        first = is_text.index(True) if any(is_text) else len(is_text)
        blocks = zip(message.content, is_text, strict=True)
        content = [block for block, is_text in blocks if not is_text]
        content.insert(first, {"type": "text", "text": text})
    return message.model_copy(update={"content": content})


def _change_arguments(
    message: BaseMessage,
    change: Callable[[Any], Any],
    tools: Container[str] | None = None,
) -> BaseMessage:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    changed = [
        call | {"args": change(call["args"])}
        if tools is None or call["name"] in tools
        else call
        for call in calls
    ]
    if changed == calls:
        return message
    args = {call["id"]: call["args"] for call in changed}
    content = message.content
    if not isinstance(content, str):
        content = [_change_block(block, args) for block in content]
    return message.model_copy(update={"tool_calls": changed, "content": content})


def _change_block(block: Any, args: Mapping[str | None, Any]) -> Any:
    call = rounds.find_repeated_call(block)
    if call is None or call not in args:
        return block
    values = {
        key: json.dumps(args[call]) if isinstance(block[key], str) else args[call]
        for key in ARGUMENT_KEYS
        if key in block
    }
    return block | values


def map_strings(value: Any, cut: Cut) -> Any:
    """Return a value of JSON with its texts cut, or changed in another way."""
    if isinstance(value, str):
        return cut(value)
    if isinstance(value, Mapping):
        return {key: map_strings(each, cut) for key, each in value.items()}
    if isinstance(value, list):
        return [map_strings(each, cut) for each in value]
    return value
