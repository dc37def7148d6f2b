"""Results of tools: any value as text for the database, for a model, and as files.

The model gets a part of the text; users get the files.
"""

import binascii
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from django.conf import settings
from langchain_core.messages import BaseMessage

from memory.engine.tokens import BYTES_PER_TOKEN, MESSAGE_OVERHEAD, count_text

from .context import SiteTool

# The limit of a stored result; the rest is dropped, and the text says so.
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
# Both, as they stand at the end of what was shortened.
MARKS = re.compile(
    r"\n\[(?:(?P<cut>shortened: [\d,]{1,12} of [\d,]{1,12} characters)|"
    r"summary of (?:the first [\d,]{1,12} of )?[\d,]{1,12} characters); read_messages "
    r"from #\d{1,10} to #\d{1,10}(?:, start \d{1,9}, reads the rest| reads them)\]"
)
# The longest of both.
MARK_CHARS = 160
UNSTORABLE = re.compile("[\0\ud800-\udfff]")
MEDIA_TYPE = re.compile(r"[a-z0-9.+-]{1,60}/[a-z0-9.+*-]{1,60}", re.IGNORECASE)
MAX_FILES, MAX_NAME, MAX_ADDRESS = 20, 200, 2_000
# The largest number of the column.
MAX_SOURCE = 2**31 - 1
# Characters that end a note, or its line.
NOT_IN_NOTES = re.compile(r"[\[\]\s\0-\x1f\x7f-\x9f]+")
# A cut moves back to the end of a line, or else of a word, if one is so near.
LINE_CHARS, WORD_CHARS = 200, 20


class ResultText(NamedTuple):
    """`whole` is for people; `sent` is what a model gets, "" where that is the same."""

    whole: str
    sent: str


class ResultSummary(NamedTuple):
    """A model's summary of the first `chars` characters of a result."""

    text: str
    chars: int


class File(NamedTuple):
    """A part of a result that is not text: bytes or an address.

    It has neither if there were too many bytes. `kind` is its media type, "" if
    unknown. `source`: the number by which replies cite it, which is also in the text.
    """

    name: str
    title: str
    kind: str
    url: str
    size: int | None
    data: bytes | None = None
    source: int | None = None

    @property
    def note(self) -> str:
        """The text that a model gets instead of the file."""
        size = "" if self.size is None else f"{self.size:,} bytes"
        word = "link" if self.url and self.data is None else self.kind.partition("/")[0]
        word = word if word in ("image", "audio", "video", "link") else "file"
        kind = self.kind.removesuffix("/*")
        parts = [NOT_IN_NOTES.sub(" ", part) for part in (self.name, kind, size)]
        known = ", ".join(part for part in (*parts, self.url) if part and part != word)
        return f"[{word}: {known}]" if known else f"[{word}]"


def refine(
    content: Any,
    site_tool: SiteTool | None,
    seq: int,
    summary: ResultSummary | None = None,
) -> ResultText:
    """Return the result of a call as text: whole, and within the tool's token budget.

    `content` is whatever a tool returned: text, blocks, bytes, a message, any value.
    `site_tool` is None for a tool that is gone by now; `seq` is the number of the
    message that will hold the result, which read_messages takes. `summary`: what a
    model gets of it, in room_for_summary(), instead of the beginning.
    """
    whole = to_whole(content)
    if fits(whole, site_tool):
        return ResultText(whole, "")
    if summary is None:
        return ResultText(whole, _shorten(whole, _find_room(site_tool), seq))
    read = f"{len(whole):,}"
    if summary.chars < len(whole):
        read = f"the first {summary.chars:,} of {read}"
    return ResultText(whole, summary.text + SUMMARY_MARK.format(read=read, seq=seq))


def shorten_again(text: str, sent: str, seq: int) -> str:
    """Return what a model gets of the result of a call, where a file says `sent`."""
    return sent if is_shortened(text, sent) else refine(text, None, seq).sent


def is_shortened(whole: str, sent: str) -> bool:
    """Return whether `sent` is what refine() makes of a result, in any budget.

    That is its beginning, with a mark, or fewer words that are marked as a summary.
    """
    mark = MARKS.search(sent, max(0, len(sent) - MARK_CHARS))
    if mark is None or mark.end() < len(sent):
        return whole.startswith(sent)
    if mark["cut"]:
        return whole.startswith(sent[: mark.start()])
    return mark.start() < len(whole)


def to_whole(content: Any) -> str:
    """Return the result as it is stored for users."""
    whole = UNSTORABLE.sub("\ufffd", to_text(content))
    if len(whole) > MAX_CHARS:
        note = f"\n[cut: the first {MAX_CHARS:,} of {len(whole):,} characters are kept]"
        whole = whole[:MAX_CHARS] + note
    return whole if whole.strip() else NOTHING


def fits(whole: str, site_tool: SiteTool | None) -> bool:
    """Return whether a model can get all of it."""
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
    """Return the beginning of the text, of at most so many tokens."""
    size = max(0, tokens * BYTES_PER_TOKEN)
    return whole[:size].encode()[:size].decode(errors="ignore")


def _shorten(whole: str, room: int, seq: int) -> str:
    """Return the beginning of the text and a mark, in at most `room` tokens."""
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
    """Return any value as text.

    Blocks of text are joined, other blocks and bytes are described by their size,
    everything else is JSON or str().
    """
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
            continue
        text = block.get("text")
        if not _find_source(block) and (not isinstance(text, str) or _is_file(block)):
            yield _read_file(block, 0).note
        if isinstance(text, str):
            yield text


def files_of(content: Any) -> list[File]:
    """Return the files in a result, with at most TOOL_FILE_BYTES of bytes together."""
    if isinstance(content, BaseMessage):
        content = content.content
    if not isinstance(content, (list, tuple)):
        return []
    found: list[File] = []
    room = settings.TOOL_FILE_BYTES
    for block in filter(_is_block, content):
        if len(found) == MAX_FILES:
            break
        file = _read_file(block, room) if _is_file(block) else None
        if file and (file.url or file.size is not None):
            found.append(file)
            room -= len(file.data or b"")
    return found


def _is_file(block: Mapping[str, Any]) -> bool:
    """Return whether a block is a file; a text is one if it has a name."""
    return not isinstance(block.get("text"), str) or bool(block.get("name"))


def _read_file(block: Mapping[str, Any], room: int) -> File:
    """Return the file of a block, with its bytes if there is room for them."""
    kind = _line(block, "mime_type", MAX_NAME).lower()
    # A kind of block that says of which kind its bytes are.
    usual = "" if block["type"] in ("text", "file") else f"{block['type']}/*"
    encoded = block.get("base64") or block.get("data") or ""
    size, data = block.get("size"), None
    if isinstance(text := block.get("text"), str):
        data = text.encode("utf-8", "replace")
        size = len(data)
    elif isinstance(encoded, str) and encoded:
        # Four characters of base64 are three bytes.
        size = len(encoded) * 3 // 4 - encoded[-2:].count("=")
        data = _decode(encoded) if size <= room else None
    elif not isinstance(size, int) or isinstance(size, bool) or size < 0:
        size = None
    return File(
        name=_line(block, "name", MAX_NAME),
        title=_line(block, "title", MAX_NAME),
        kind=next(filter(MEDIA_TYPE.fullmatch, (kind, usual)), ""),
        url=_line(block, "url", MAX_ADDRESS),
        size=size,
        data=data if data is not None and len(data) <= room else None,
        source=_find_source(block),
    )


def _find_source(block: Mapping[str, Any]) -> int | None:
    number = block.get("source")
    is_number = isinstance(number, int) and 0 < number <= MAX_SOURCE
    return number if is_number and block.get("url") else None


def _decode(encoded: str) -> bytes | None:
    try:
        return binascii.a2b_base64(encoded)
    except ValueError:
        return None


def _line(block: Mapping[str, Any], name: str, most: int) -> str:
    """One line of a text that can be stored; "" for anything else."""
    value = block.get(name)
    line = value[:most] if isinstance(value, str) else ""
    return " ".join(UNSTORABLE.sub("\ufffd", line).split())
