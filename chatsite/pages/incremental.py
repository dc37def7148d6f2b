"""Replies that are being written, formatted as far as nothing can change it any more.

A block of Markdown is settled when no text that may follow can alter it. Each is
formatted once for all pages of the process; what comes after the last one stays plain.
"""

import re
from bisect import bisect
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache
from threading import Lock
from typing import Any

from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from markdown_it.token import Token

from . import markdown

# Replies remembered; others are formatted again when a page needs them.
MAX_REPLIES = 256
# What is open is read again when it has grown by this part: all in all, a reply is
# read a fixed number of times, however long it is and whatever stays open.
GROWTH = 16

_LINE_END = re.compile(r"\r\n?|\n")
# What opens a formula makes the parser look further ahead than one line.
FORMULA_MARKS = ("$$", "\\[", "\\begin{")

# One thread: a hostile text delays other texts' formatting, never the server.
_pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="format")


@dataclass(frozen=True, slots=True)
class RenderedBlocks:
    """Settled blocks as HTML, and where they end in the text."""

    end: int
    html: SafeString


@dataclass(frozen=True, slots=True)
class Fence:
    """Code that is still open at the end of the text: where it starts, its class."""

    start: int
    code_class: str
    # A line that ends the code, and a last one that may become such a line.
    closing: re.Pattern[str]
    # A line that begins other code inside of it, which has its own end.
    inner: re.Pattern[str] | None
    # Ends of whole lines that were read, and how much code is open inside of it there.
    places: list[tuple[int, int]] = field(default_factory=list, compare=False)

    @classmethod
    def from_token(cls, token: Token, start: int) -> "Fence":
        mark, count = token.markup[0], len(token.markup)
        closing = rf"^ {{0,3}}(?:{mark}{{{count},}}[ \t]*$|{mark}+[ \t]*\Z)"
        inner = markdown.inner_fence(token)
        if inner:
            closing += rf"|^{inner.pattern}$"
        pattern = re.compile(closing, re.MULTILINE)
        return cls(start, markdown.code_class(token.info), pattern, inner)

    def find_end(self, text: str, before: int) -> int | None:
        """Return the end of the code before a place of the text.

        Lines that are known to continue it are not read again.
        """
        index = bisect(self.places, (before, before))
        after, opened = self.places[index - 1] if index else (self.start, 0)
        whole = max(after, text.rfind("\n", 0, before) + 1)
        end, opened = self._scan(text, after, whole, opened)
        if end is not None:
            return end
        # Of threads that are here at once, any may be the last; all places are true.
        if not self.places or whole > self.places[-1][0]:
            self.places.append((whole, opened))
        return self._scan(text, whole, before, opened)[0]

    def _scan(
        self, text: str, after: int, before: int, opened: int
    ) -> tuple[int | None, int]:
        """Return the end of the code between two places, and how much is open in it."""
        for found in self.closing.finditer(text, after, before):
            if self.inner and self.inner.fullmatch(found[0]):
                opened += 1
            elif opened:
                opened -= 1
            else:
                return found.start(), opened
        return None, opened

    def read_content(self, text: str) -> str:
        return text[self.start : self.find_end(text, len(text))]


@dataclass(frozen=True, slots=True)
class RenderedReply:
    """A reply as a page can show it now: settled blocks, then what is open."""

    pieces: tuple[RenderedBlocks, ...] = ()
    form: str = "text"  # how the open part is drawn: text, code, or wrap for all of it
    tail: str = ""  # the open part
    code_class: str = ""

    @property
    def end(self) -> int:
        return self.pieces[-1].end if self.pieces else 0

    def is_continuation_of(self, before: "RenderedReply") -> bool:
        """Return if it begins with the blocks of the view before."""
        return self.pieces[: len(before.pieces)] == before.pieces

    def join_html(self, after: int = 0) -> SafeString:
        """Return the settled blocks after this place of the text."""
        return format_html_join(
            "", "{}", ((piece.html,) for piece in self.pieces if piece.end > after)
        )


@dataclass(frozen=True, slots=True)
class _State:
    text: str = ""  # what is settled
    pieces: tuple[RenderedBlocks, ...] = ()
    fence: Fence | None = None
    is_plain: bool = False  # not formatted at all: too long, or nested too deep


@dataclass(slots=True)
class IncrementalRenderer:
    """The renderer of one attempt at one reply.

    Its state only ever grows, and is replaced as a whole, so that reading it needs no
    lock.
    """

    state: _State = field(default_factory=_State)
    _links: dict[str, Any] = field(default_factory=dict)
    _read: str = ""  # what was looked at so far
    _open: int = 0  # how many characters of it were open afterwards
    _lock: Lock = field(default_factory=Lock)
    _work: Future[None] | None = None

    def is_same_reply(self, text: str) -> bool:
        """Return if the text is this reply, as far as both of them go."""
        return text.startswith(self._read) or self._read.startswith(text)

    def view_reply(self, text: str) -> RenderedReply:
        """Return what is ready, at once; the rest is rendered for the next time."""
        if self._is_due(text) and (self._work is None or self._work.done()):
            self._work = _pool.submit(self.settle_text, text)
        return _view_state(self.state, text)

    def _is_due(self, text: str) -> bool:
        state, is_open = self.state, len(text) - len(self.state.text)
        read = len(self._read)
        if state.is_plain or text.find("\n", read) < 0:
            return False
        if is_open * GROWTH >= self._open * (GROWTH + 1):
            return True
        end = state.fence and state.fence.find_end(text, text.rfind("\n") + 1)
        return end is not None and end >= text.rfind("\n", 0, read) + 1

    def settle_text(self, text: str) -> None:
        """Format what is settled by now."""
        with self._lock:
            if len(text) > len(self._read) and not self.state.is_plain:
                self.state = self._grow(text)
                self._read = text
                self._open = len(text) - len(self.state.text)

    def _grow(self, text: str) -> _State:
        before = len(self.state.text)
        rest = text[before:]
        blocks = markdown.find_blocks(_whole_lines(rest), self._links)
        if blocks is None or not markdown.is_cheap(text):
            return _State(is_plain=True)
        end, fence = find_end(rest, blocks)
        if fence:
            fence = replace(fence, start=fence.start + before)
            known = self.state.fence
            fence = known if known and known.start == fence.start else fence
        if not end:
            return replace(self.state, fence=fence)
        html = markdown.render_part(rest[:end], self._links)
        if html is None:
            return _State(is_plain=True)
        piece = RenderedBlocks(before + end, html)
        return _State(text[: piece.end], (*self.state.pieces, piece), fence)


def find_end(text: str, blocks: list[Token]) -> tuple[int, Fence | None]:
    """Return the end of a text's settled part, and the code that is open after it.

    The last line counts only when it is complete, and the last block can still go on:
    all but a fence that has been closed.
    """
    lines = _Lines.from_text(_whole_lines(text))
    tops = [token for token in blocks if token.level == 0 and token.nesting >= 0]
    index = max((n for n in range(len(tops)) if lines.is_final(tops[n])), default=0)
    if tops and tops[index].type == "fence" and index == len(tops) - 1:
        first, last = tops[index].map
        if markdown.is_closed(tops[index]):
            return lines.starts[last], None
        fence = Fence.from_token(tops[index], lines.starts[first + 1])
        return (lines.starts[first] if index else 0), fence
    return (lines.starts[tops[index].map[0]] if index else 0), None


@dataclass(frozen=True, slots=True)
class _Lines:
    """The starts of a text's lines, and which lines between them are blank."""

    text: str
    starts: list[int]
    blank: list[bool]

    @classmethod
    def from_text(cls, text: str) -> "_Lines":
        starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
        blank = [
            not text[start:end].strip(" \t\r\n")
            for start, end in zip(starts, starts[1:], strict=False)
        ]
        return cls(text, starts, blank)

    def is_final(self, block: Token) -> bool:
        """Return if the parser would begin this block here, whatever comes later.

        It decides by the line itself, except that it looks for the end of a formula: as
        far as the next blank line.
        """
        first = block.map[0]
        before = self.text[: self.starts[first]]
        if not any(mark in before for mark in FORMULA_MARKS):
            return True
        words = next((n for n in range(first - 1, -1, -1) if not self.blank[n]), -1)
        return any(self.blank[words + 1 :])


def _whole_lines(text: str) -> str:
    return text[: text.rfind("\n") + 1]


def _view_state(state: _State, text: str) -> RenderedReply:
    if state.is_plain:
        return RenderedReply((), "wrap", text)
    pieces = tuple(piece for piece in state.pieces if piece.end <= len(text))
    end = pieces[-1].end if pieces else 0
    fence = state.fence
    if fence and end == len(state.text) and len(text) >= fence.start:
        return RenderedReply(pieces, "code", fence.read_content(text), fence.code_class)
    return RenderedReply(pieces, "text", text[end:].strip("\r\n"))


@lru_cache(maxsize=MAX_REPLIES)
def _place_of(turn: int, attempt: int) -> list[IncrementalRenderer]:
    return [IncrementalRenderer()]


def find_renderer(turn: int, attempt: int, text: str) -> IncrementalRenderer:
    """Return this process's renderer of an attempt's reply.

    The same numbers come again when a reply is regenerated; its text tells which one it
    is.
    """
    place = _place_of(turn, attempt)
    if not place[0].is_same_reply(text):
        place[0] = IncrementalRenderer()
    return place[0]


def view_of(turn: int, attempt: int, text: str) -> RenderedReply:
    """Return a reply for a page that is rendered from the database."""
    renderer = find_renderer(turn, attempt, text)
    renderer.settle_text(text)
    return renderer.view_reply(text)
