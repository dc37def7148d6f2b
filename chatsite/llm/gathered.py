"""The parts of a streamed reply, gathered as they come: plain lists, joined once.

What a server sends has no bound of its own, so all of it is counted while it is read.
"""

import json
import re
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from langchain_core.messages.tool import ToolCallChunk, tool_call_chunk

# What a call takes besides its texts: one without any is not for nothing.
CALL_CHARS = 50
# All that OpenAI writes of a call: what is beside it is its provider's own.
CALL_FIELDS = {"index", "id", "type", "function"}
CALL_NAMES = {"name", "arguments"}
# Pages that a reply cites, and the addresses that can be links.
MOST_SOURCES = 50
ADDRESS = re.compile(r"https?://[^\s<>]{1,2000}")
IMAGE = re.compile(r"data:(image/[a-z+.-]{1,30});base64,([\w+/]+)")
# A reply that asks for more has no end: no turn may run half as many.
MAX_READ_CALLS = 256


class TextParts:
    """A text in pieces, up to a number of characters."""

    def __init__(self, limit: int) -> None:
        self._pieces: list[str] = []
        self._left = limit

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def __str__(self) -> str:
        return "".join(self._pieces)

    def add_text(self, text: str) -> None:
        if text := text[: self._left]:
            self._pieces.append(text)
            self._left -= len(text)


class Extras:
    """The entries that a server puts beside the text of a reply, by name.

    Lists grow, and pieces of one entry of a list are joined. None is kept where they
    are too long.
    """

    # Fields of an entry that come in pieces.
    PIECES = ("text", "summary", "data")
    # Of a list, and of a text in pieces: each one more costs a look at all of it.
    MOST_ENTRIES, MOST_JOINED = 500, 100_000

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._found: dict[str, Any] = {}

    def add_entries(self, extras: Mapping[str, Any]) -> None:
        for name, value in extras.items():
            self._left -= len(str(value))
            if self._left < 0:
                continue
            if not isinstance(value, list):
                self._found[name] = value
                continue
            known = self._found.setdefault(name, [])
            for each in value:
                self._add_entry(known, each)

    def _add_entry(self, known: list[Any], entry: Any) -> None:
        names = entry.keys() & self.PIECES if isinstance(entry, dict) else ()
        if not names and entry in known:
            return  # some servers repeat a whole list in each chunk
        last = known[-1] if known and isinstance(known[-1], dict) else {}
        is_same = all(last.get(m) == entry.get(m) for m in ("type", "index") if names)
        if not (is_same and any(isinstance(last.get(name), str) for name in names)):
            known.append(dict(entry) if isinstance(entry, dict) else entry)
            self._left = self._left if len(known) <= self.MOST_ENTRIES else -1
            return
        for name, value in entry.items():
            known_text = last.get(name) if name in names else None
            is_text = isinstance(known_text, str) and isinstance(value, str)
            last[name] = known_text + value if is_text else value
            if is_text and len(last[name]) > self.MOST_JOINED:
                self._left = -1

    def to_value(self) -> dict[str, Any]:
        return self._found if self._left >= 0 else {}


def describe_extras(extras: Mapping[str, Any]) -> str:
    """Return the parts of a reply beside its text, in lines that follow it.

    These are the pages that it cites, by their numbers, and its images, which are not
    kept. "": nothing.
    """
    pages: dict[str, str] = {}
    for name in ("citations", "annotations", "search_results"):
        for each in _list_of(extras, name):
            inner = each.get("url_citation") if isinstance(each, dict) else None
            source = inner if isinstance(inner, dict) else each
            known = source if isinstance(source, dict) else {"url": source}
            url, title = known.get("url"), known.get("title")
            if isinstance(url, str) and ADDRESS.fullmatch(url):
                told = " ".join(title.split())[:200] if isinstance(title, str) else ""
                pages[url] = pages.get(url) or told
    numbered = islice(enumerate(pages.items(), 1), MOST_SOURCES)
    lines = [
        f"[{number}] {title}{': ' if title else ''}<{url}>"
        for number, (url, title) in numbered
    ]
    images = (str(each) for each in _list_of(extras, "images"))
    lines += [f"[{_name_image(each)}, not kept]" for each in islice(images, 20)]
    return "  \n".join(lines)


def _list_of(extras: Mapping[str, Any], name: str) -> list[Any]:
    found = extras.get(name)
    return found if isinstance(found, list) else []


def _name_image(told: str) -> str:
    """Return the media type and size of an image, if its bytes came along."""
    found = IMAGE.search(told)
    if found is None:
        return "image"
    return f"{found[1]}, {len(found[2]) * 3 // 4:,} bytes"


class _Call:
    def __init__(self) -> None:
        self.id = ""
        self.extras: dict[str, Any] = {}
        self.name: list[str] = []
        self.arguments: list[str] = []


class Calls:
    """The calls of a reply, up to MAX_READ_CALLS of a number of characters in all."""

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._by_id: dict[str, _Call] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    @property
    def is_full(self) -> bool:
        return self._left <= 0 or len(self._calls) > MAX_READ_CALLS

    def add(self, piece: ToolCallChunk) -> None:
        if self.is_full:
            return
        call_id, name, arguments = (
            (piece[field] or "")[: self._left] for field in ("id", "name", "args")
        )
        index = piece["index"]
        call = self._find(index, call_id, name) or self._begin()
        if call_id and not call.id:
            call.id = call_id
            self._by_id[call_id] = call
        if index is not None:
            self._by_index[index] = call
        # Some servers repeat the whole name in each piece.
        if call.name != [name]:
            call.name.append(name)
        call.arguments.append(arguments)
        self._left -= len(call_id) + len(name) + len(arguments)
        if extras := piece.get("extras"):
            self._left -= len(str(extras))
            call.extras |= extras if self._left > 0 else {}

    def _find(self, index: int | None, call_id: str, name: str) -> _Call | None:
        """Return the call that a piece continues; None: it begins one.

        Servers that give no index separate calls by their ids, or begin each with its
        name; others give all calls the same index.
        """
        if index is not None:
            call = self._by_index.get(index)
            is_other = call and call_id and call.id and call_id != call.id
            return None if is_other else call
        if call_id:
            return self._by_id.get(call_id)
        return self._calls[-1] if self._calls and not name else None

    def _begin(self) -> _Call:
        self._calls.append(call := _Call())
        self._left -= CALL_CHARS
        return call

    def to_chunks(self) -> list[ToolCallChunk]:
        """Return each call as one piece. An id or a name that never came is None."""
        return [
            tool_call_chunk(
                id=call.id or None,
                name="".join(call.name) or None,
                args="".join(call.arguments),
                index=index,
            )
            | ({"extras": call.extras} if call.extras else {})
            for index, call in enumerate(self._calls)
        ]


def read_calls(found: object, *, is_whole: bool) -> list[ToolCallChunk]:
    """Return the pieces in a server's `tool_calls`, without those that are empty.

    `is_whole`: they are the calls of a whole message, not of a delta.
    """
    pieces = []
    for place, each in enumerate(found if isinstance(found, list) else ()):
        if not isinstance(each, dict):
            continue
        piece = _read_call(each)
        if is_whole:
            piece["index"] = place
        if piece["id"] or piece["name"] or piece["args"] or "extras" in piece:
            pieces.append(piece)
    return pieces


def _read_call(found: dict[str, Any]) -> ToolCallChunk:
    function, index = found.get("function"), found.get("index")
    function = function if isinstance(function, dict) else {}
    arguments = function.get("arguments")
    # Some servers give them as an object instead of its JSON.
    if isinstance(arguments, dict | list):
        arguments = json.dumps(arguments)
    is_number = isinstance(index, int) and not isinstance(index, bool)
    extras = {name: found[name] for name in found if name not in CALL_FIELDS}
    if beside := {name: function[name] for name in function if name not in CALL_NAMES}:
        extras["function"] = beside
    piece = tool_call_chunk(
        id=_text_or_none(found.get("id")),
        name=_text_or_none(function.get("name")),
        args=_text_or_none(arguments),
        index=index if is_number else None,
    )
    return piece | {"extras": extras} if extras else piece


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def to_openai(pieces: Iterable[ToolCallChunk]) -> list[dict[str, Any]]:
    """Return the pieces as OpenAI sends them."""
    return [
        {
            "index": piece["index"],
            "id": piece["id"],
            "type": "function",
            "function": {"name": piece["name"], "arguments": piece["args"]},
        }
        for piece in pieces
    ]
