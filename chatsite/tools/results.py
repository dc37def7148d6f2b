"""Results of tools: any value as text that can be stored, and the part of it that a
model gets.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from django.conf import settings
from langchain_core.messages import BaseMessage

from memory.engine.tokens import BYTES_PER_TOKEN, MESSAGE_OVERHEAD, count_text

from .registry import SiteTool

# Of a stored result; what is beyond is dropped, and the text says so.
MAX_CHARS = 10_000_000
NOTHING = "The tool returned nothing."
MARK = (
    "\n[shortened: {shown:,} of {whole:,} characters; read_messages from #{seq} to "
    "#{seq}, start {shown}, reads the rest]"
)
SUMMARY_MARK = (
    "\n[summary of {read} characters; read_messages from #{seq} to #{seq} reads them]"
)
# Tokens that the mark of a summary takes, at most.
MARK_TOKENS = 40
UNSTORABLE = re.compile("[\0\ud800-\udfff]")
# A cut moves back to the end of a line, or else of a word, if one is so near.
LINE_CHARS, WORD_CHARS = 200, 20


class Refined(NamedTuple):
    """`whole` is for people; `sent` is what a model gets, "" where that is the same."""

    whole: str
    sent: str


class Summary(NamedTuple):
    """What a model has made of the first `chars` characters of a result."""

    text: str
    chars: int


def refine(
    content: Any, site_tool: SiteTool | None, seq: int, summary: Summary | None = None
) -> Refined:
    """The result of a call as text: whole, and within the tool's budget in tokens.

    `content` is whatever a tool returned: text, blocks, bytes, a message, any value.
    `site_tool` is None for a tool that is gone by now; `seq` is the number of the
    message that will hold the result, which read_messages takes. `summary`: what a
    model gets of it, in room_for_summary(), instead of the beginning.
    """
    whole = to_whole(content)
    if fits(whole, site_tool):
        return Refined(whole, "")
    if summary is None:
        return Refined(whole, _shorten(whole, _find_room(site_tool), seq))
    read = f"{len(whole):,}"
    if summary.chars < len(whole):
        read = f"the first {summary.chars:,} of {read}"
    return Refined(whole, summary.text + SUMMARY_MARK.format(read=read, seq=seq))


def to_whole(content: Any) -> str:
    """The result as it is stored for people."""
    whole = UNSTORABLE.sub("\ufffd", to_text(content))
    if len(whole) > MAX_CHARS:
        note = f"\n[cut: the first {MAX_CHARS:,} of {len(whole):,} characters are kept]"
        whole = whole[:MAX_CHARS] + note
    return whole if whole.strip() else NOTHING


def fits(whole: str, site_tool: SiteTool | None) -> bool:
    """Whether a model can get all of it."""
    room = _find_room(site_tool)
    # Counting 5 MB is not needed to see that they are too much.
    return len(whole) <= room * BYTES_PER_TOKEN and count_text(whole) <= room


def room_for_summary(site_tool: SiteTool | None) -> int:
    """Tokens that the summary of a result may have."""
    return _find_room(site_tool) - MARK_TOKENS


def _find_room(site_tool: SiteTool | None) -> int:
    budget = site_tool.budget if site_tool else settings.TOOL_RESULT_TOKENS
    return budget - MESSAGE_OVERHEAD


def begin(whole: str, tokens: int) -> str:
    """The beginning of the text, of so many tokens at most."""
    size = max(0, tokens * BYTES_PER_TOKEN)
    return whole[:size].encode()[:size].decode(errors="ignore")


def _shorten(whole: str, room: int, seq: int) -> str:
    """The beginning of the text and a mark, in `room` tokens at most."""
    mark = MARK.format(shown=len(whole), whole=len(whole), seq=seq)
    start = begin(whole, room - count_text(mark))
    shown = len(start) if len(start) == len(whole) else _find_end(start)
    return start[:shown] + MARK.format(shown=shown, whole=len(whole), seq=seq)


def _find_end(start: str) -> int:
    for pattern, near in ((r"\n[^\n]*\Z", LINE_CHARS), (r"\s\S*\Z", WORD_CHARS)):
        last = max(0, len(start) - near)
        if found := re.search(pattern, start[last:]):
            return last + found.start()
    return len(start)


def to_text(content: Any) -> str:
    """Any value as text: blocks of text joined, other blocks and bytes described by
    their size, everything else as JSON or as str() has it."""
    if isinstance(content, BaseMessage):
        content = content.content
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, (bytes, bytearray, memoryview)):
        return _read_bytes(bytes(content))
    if isinstance(content, (list, tuple)) and any(map(_is_block, content)):
        return "\n".join(_read_blocks(content))
    try:
        return json.dumps(content, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return str(content)


def _read_bytes(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    return f"[{len(data):,} bytes that are no text]" if "\0" in text else text


def _is_block(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("type"), str)


def _read_blocks(blocks: list[Any] | tuple[Any, ...]) -> Iterator[str]:
    for block in blocks:
        if not _is_block(block):
            yield to_text(block)
        elif isinstance(block.get("text"), str):
            yield block["text"]
        else:
            kind = block.get("mime_type") or block["type"]
            data = block.get("base64") or block.get("data") or ""
            # Four characters of base64 are three bytes.
            size = f", {len(data) * 3 // 4:,} bytes" if isinstance(data, str) else ""
            address = block.get("url")
            yield f"[{kind}{size}]" if not address else f"[{kind}: {address}]"
