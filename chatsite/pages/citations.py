"""Numbers of sources in replies, such as [3], and the links made of them.

A number becomes a link where the conversation has such a source.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from markdown_it.token import Token

from chatsite.features.tools.tool_loop.result_files import find_sources

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from memory.models import Conversation, Message

# One number or several in brackets, as models write them.
CITATION = re.compile(r"[\[【](\d{1,5}(?:[,，、] ?\d{1,5}){0,9})[\]】]")
NUMBER = re.compile(r"\d+")
# Of all messages of a page; and links of one text, which take longer than its words.
MOST, MOST_LINKS = 500, 1_000


class CitedSource(NamedTuple):
    """A source that a text cites."""

    number: int
    address: str
    title: str


def find_cited(
    conversation: "Conversation",
    texts: Mapping[int, str],
    shown: "QuerySet[Message] | None" = None,
) -> dict[int, tuple[CitedSource, ...]]:
    """Return the sources that these replies cite, by the number of the message.

    Each source was found before its reply. `shown`: the messages that may be quoted,
    else all. The database is queried only if a text has a number in brackets.
    """
    numbers = {seq: set(_find_numbers(text)) for seq, text in texts.items()}
    wanted = sorted(set().union(*numbers.values()))[:MOST]
    if not wanted:
        return {}
    found = find_sources(conversation, wanted, shown)
    return {
        seq: tuple(
            CitedSource(number, source.address, source.title)
            for number, source in found.items()
            if number in named and source.seq < seq
        )
        for seq, named in numbers.items()
    }


def _find_numbers(text: str) -> Iterator[int]:
    for found in CITATION.finditer(text):
        yield from map(int, NUMBER.findall(found[1]))


def are_few(text: str) -> bool:
    """Return if the text has few enough numbers to link them."""
    return sum(1 for _ in islice(_find_numbers(text), MOST_LINKS + 1)) <= MOST_LINKS


def link_numbers(token: Token, cited: Mapping[int, CitedSource]) -> Iterator[Token]:
    """Return the text as tokens, with raised links in the place of what is cited."""
    text, end = token.content, 0
    for found in CITATION.finditer(text):
        if not any(int(number) in cited for number in NUMBER.findall(found[1])):
            continue
        yield make_text(token, text[end : found.start()])
        yield Token("sup_open", "sup", 1)
        yield from _link_each(token, found[0], cited)
        yield Token("sup_close", "sup", -1)
        end = found.end()
    yield make_text(token, text[end:])


def _link_each(
    like: Token, text: str, cited: Mapping[int, CitedSource]
) -> Iterator[Token]:
    end, is_one = 0, len(NUMBER.findall(text)) == 1
    for found in NUMBER.finditer(text):
        source = cited.get(int(found[0]))
        if source is None:
            continue
        # Of a single one the brackets are a part of the link: so it is not too small.
        start, stop = (0, len(text)) if is_one else found.span()
        yield make_text(like, text[end:start])
        target = {"href": source.address, "title": source.title}
        yield Token("link_open", "a", 1, target, level=like.level)
        yield make_text(like, text[start:stop])
        yield Token("link_close", "a", -1, level=like.level)
        end = stop
    yield make_text(like, text[end:])


def make_text(like: Token, content: str) -> Token:
    """Return a token of this text, at the level of another."""
    return Token("text", "", 0, content=content, level=like.level)
