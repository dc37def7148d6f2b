"""Which facts got lost between messages and the text made of them, and which came from
nowhere; and where they stand in a text.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory.engine import facts

# More is shown without marks: reading it for facts would keep the page waiting.
MAX_CHARS = 200_000


@dataclass(frozen=True, slots=True)
class Piece:
    text: str
    marked: bool = False


def mark(text: str, found: Sequence[str]) -> list[Piece]:
    """The text in pieces, those marked that are one of the facts found."""
    if not found:
        return [Piece(text)] if text else []
    longest_first = sorted(filter(None, found), key=len, reverse=True)
    pattern = "|".join(map(_whole, longest_first))
    parts = re.split(f"({pattern})", text)
    return [Piece(part, bool(n % 2)) for n, part in enumerate(parts) if part]


def _whole(fact: str) -> str:
    """A fact, not as part of a longer word or number."""
    before = r"(?<![A-Za-z0-9])" if fact[0].isalnum() and fact[0].isascii() else ""
    after = r"(?![A-Za-z0-9])" if fact[-1].isalnum() and fact[-1].isascii() else ""
    return before + re.escape(fact) + after


def lost(texts: Sequence[str], summaries: Iterable[str]) -> list[list[str]] | None:
    """For each text its facts that the summaries do not say; None: it is too much."""
    if sum(map(len, texts)) > MAX_CHARS:
        return None
    return list(facts.not_carried_over(texts, summaries))


def invented(
    text: str, sources: Sequence[str], dates: Iterable, known: Iterable[str]
) -> list[str]:
    """The facts of a summary that its sources do not say, beside those known."""
    found = list(known)
    if sum(map(len, sources)) <= MAX_CHARS:
        found += facts.unsupported(text, sources, dates)
    return list(dict.fromkeys(str(each) for each in found))
