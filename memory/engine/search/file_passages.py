"""Passages of long files: how a file is divided, and which passages are quoted.

A file is cut in stretches that take some milliseconds each, whatever is in them, so
that other requests do not wait for a whole file.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import unescape
from xml.sax.saxutils import quoteattr

from langchain_core.messages import BaseMessage, HumanMessage

from ..compose import PASSAGE
from ..tokens import TokenCounter
from .excerpts import Measure, RecallNote
from .passages import Span, tile_passages

# A stretch ends after a paragraph, a line or a word of its last part.
STRETCH_CHARS, LAST_PART = 32_000, 4_000
ENDS = ("\n\n", "\n", "。", " ")
# Short passages are joined up to the first length, and long ones are cut at the second:
# 5,000,000 characters are 9,000 passages at most.
LEAST_CHARS, MOST_CHARS = 600, 1_200
# Compared with a message, a passage of a file has more words beside the wanted ones,
# and users ask about files that they have attached: this share of the fit is enough.
FIT_SHARE = 2 / 3


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of the long file at a place of message `seq`, and its text.

    `page`: the page on which it begins, of a file that has pages; `fit`: as of a Hit.
    """

    seq: int
    place: int
    name: str
    start: int
    end: int
    text: str
    page: int | None = None
    fit: float = 0.0


def divide_file(text: str) -> Iterator[Span]:
    """Yield stretches that together are the text."""
    start = 0
    while start < len(text):
        end = start + STRETCH_CHARS
        if end < len(text):
            found = (text.rfind(mark, end - LAST_PART, end) for mark in ENDS)
            lengths = zip(found, map(len, ENDS), strict=True)
            end = next((at + size for at, size in lengths if at >= 0), end)
        yield start, min(end, len(text))
        start = end


def split_stretch(text: str) -> list[Span]:
    """Return passages that together are the text, of up to MOST_CHARS."""
    found: list[Span] = []
    for first, last in tile_passages(text, MOST_CHARS):
        if found:
            start, end = found[-1]
            if end - start < LEAST_CHARS and last - start <= MOST_CHARS:
                first, _ = found.pop()
        found.append((first, last))
    return found


def choose_passages(
    found: Sequence[Passage], *, room: int, min_fit: float, count_tokens: TokenCounter
) -> list[RecallNote]:
    """Return the best passages that fit into `room` tokens, in the order of the files.

    Neighbours are quoted as one.
    """
    measure = Measure(count_tokens)
    room -= measure.frame
    chosen = []
    for passage in sorted(found, key=lambda each: -each.fit):
        if passage.fit < min_fit:
            break
        if (size := measure(quote_passage(passage))) <= room:
            chosen.append(passage)
            room -= size
    return [
        RecallNote(
            each.seq, quote_passage(each), (each.start, each.end), place=each.place
        )
        for each in _join_neighbours(chosen)
    ]


def _join_neighbours(chosen: Sequence[Passage]) -> list[Passage]:
    joined: list[Passage] = []
    for each in sorted(chosen, key=lambda each: (each.seq, each.place, each.start)):
        last = joined[-1] if joined else None
        if last and (last.seq, last.place, last.end) == (
            each.seq,
            each.place,
            each.start,
        ):
            joined[-1] = replace(last, end=each.end, text=last.text + each.text)
        else:
            joined.append(each)
    return joined


# The form that quote_passage() and compose.quote_message() write: the text is escaped.
QUOTED = re.compile(
    r"""<file n="(?P<seq>\d+)" name=(?P<name>"[^"]*"|'[^']*') """
    r"""characters="(?P<start>\d+)-(?P<end>\d+)"(?: page="(?P<page>\d+)")?>"""
    r"(?P<text>[^<]*)</file>"
)


def read_quoted(text: str) -> list[Passage]:
    """Return the passages of long files among the notes of a request, for display."""
    return [
        Passage(
            int(seq),
            0,
            unescape(name[1:-1]),
            int(start),
            int(end),
            unescape(words),
            int(page) if page else None,
        )
        for seq, name, start, end, page, words in QUOTED.findall(text)
    ]


def quote_passage(passage: Passage) -> BaseMessage:
    """Return the passage as a message for compose.quote_message()."""
    where = f'name={quoteattr(passage.name)} characters="{passage.start}-{passage.end}"'
    if passage.page:
        where += f' page="{passage.page}"'
    return HumanMessage(
        passage.text, id=str(passage.seq), additional_kwargs={PASSAGE: where}
    )
