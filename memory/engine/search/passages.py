"""Passages of long messages: pieces of a size that has one subject.

A search that takes a long reply as a whole finds none of its parts, because each is one
of many. Passages are ranked, and are what is shown of a long message.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from .terms import CHINESE

# Words of a passage: paragraphs are joined until they have LEAST_WORDS, and those with
# more than MOST_WORDS are divided.
LEAST_WORDS, MOST_WORDS = 70, 120
# A shorter rest at the end joins the passage before it.
REST_WORDS = 25

Span = tuple[int, int]

# A block of code stays whole; its fence may be unclosed.
BLOCK = re.compile(r"^(`{3,}|~{3,}).*?(?:^\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
GAP = re.compile(r"\n\s*\n")
# Where a paragraph can be divided: after a line or a sentence.
SENTENCE = re.compile(r"\n+|(?<=[.!?])\s+|(?<=[。！？；])")


def split_passages(text: str) -> list[Span]:
    """Return the spans of a text's passages; at least one.

    Together they are the text without the space around them.
    """
    found: list[Span] = []
    start = end = words = 0
    for piece_start, piece_end, size in _read_pieces(text):
        if words and (words >= LEAST_WORDS or words + size > MOST_WORDS):
            found.append((start, end))
            words = 0
        if not words:
            start = piece_start
        end, words = piece_end, words + size
    if found and words < REST_WORDS:
        start, _ = found.pop()
    return [*found, (start, end)]


def tile_passages(text: str, most: int) -> Iterator[Span]:
    """Yield the passages with the space between them, so that no character is left out.

    Passages of more than `most` characters are cut in pieces.
    """
    starts = [0, *(start for start, _ in split_passages(text)[1:]), len(text)]
    for start, end in pairwise(starts):
        for first in range(start, end, most):
            yield first, min(first + most, end)


def _read_pieces(text: str) -> Iterator[tuple[int, int, int]]:
    """Yield paragraphs, parts of long ones, and blocks of code: start, end, words."""
    for start, end in _read_paragraphs(text):
        size = _count_words(text[start:end])
        if size <= MOST_WORDS or BLOCK.match(text, start, end):
            yield start, end, size
            continue
        for first, last in _divide_span(text, SENTENCE, start, end):
            yield first, last, _count_words(text[first:last])


def _read_paragraphs(text: str) -> Iterator[Span]:
    place = 0
    for block in BLOCK.finditer(text):
        yield from _divide_span(text, GAP, place, block.start())
        yield from _trim_span(text, *block.span())
        place = block.end()
    yield from _divide_span(text, GAP, place, len(text))


def _divide_span(
    text: str, at: re.Pattern[str], start: int, end: int
) -> Iterator[Span]:
    """Yield the parts of text[start:end] between the matches, without outer space."""
    for gap in at.finditer(text, start, end):
        yield from _trim_span(text, start, gap.start())
        start = gap.end()
    yield from _trim_span(text, start, end)


def _trim_span(text: str, start: int, end: int) -> Iterator[Span]:
    part = text[start:end]
    if stripped := part.strip():
        start += len(part) - len(part.lstrip())
        yield start, start + len(stripped)


def _count_words(text: str) -> int:
    """Count the words of a text; two Chinese characters are a word."""
    chinese = sum(map(len, CHINESE.findall(text)))
    return len(text.split()) + chinese // 2
