"""Replies that call tools, for Upstream.script()."""

import json
from collections.abc import Callable
from typing import Any


def calling(
    *calls: tuple[str, Any],
    text: str = "",
    split: int = 0,
    finish: str | None = "tool_calls",
    ids: tuple[str, ...] = (),
) -> Callable[[Any], None]:
    """Return a reply that says `text` and then makes the calls, all at once.

    Each call is a name and its arguments, as a value or as their JSON text. `split`:
    characters of each piece of the arguments, the calls' pieces by turns. `finish`: the
    finish reason; None cuts the connection in the middle of the arguments.
    """

    def answer(x: Any) -> None:
        if text:
            x.texts(text)
        starts, texts = [], []
        number = len(x.handler.upstream.requests)
        for index, (name, arguments) in enumerate(calls):
            call_id = ids[index] if ids else f"call_{number}_{index}"
            function = {"name": name, "arguments": ""}
            start = {"index": index, "id": call_id, "type": "function"}
            starts.append({**start, "function": function})
            is_text = isinstance(arguments, str)
            texts.append(arguments if is_text else json.dumps(arguments))
        x.chunk({"role": "assistant", "tool_calls": starts})
        if finish is None:
            texts = [each[: len(each) // 2] for each in texts]
        for pieces in _by_turns(texts, split):
            x.chunk({"tool_calls": pieces})
        if finish is None:
            x.cut()
        else:
            x.end(finish)

    return answer


def _by_turns(texts: list[str], split: int) -> list[list[dict[str, Any]]]:
    size = split or max(map(len, texts))
    pieces = []
    for start in range(0, max(map(len, texts)), size):
        found = [
            {"index": index, "function": {"arguments": text[start : start + size]}}
            for index, text in enumerate(texts)
            if text[start : start + size]
        ]
        # Each in a chunk of its own, where they are split.
        pieces += [[each] for each in found] if split else [found]
    return pieces
