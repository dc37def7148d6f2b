"""Differences between two texts, word by word.

Chinese, Japanese and Korean are compared by character, since no spaces part their
words.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import Literal

Kind = Literal["same", "added", "removed"]

# Longer texts are compared line by line: the time grows with the square of the parts.
MAX_WORDS = 3000
# A text of so many words has about 2.5 million, as half of its parts are spaces.
MAX_PAIRS = 3_000_000
CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
# A number is one word, with what parts its digits.
WORD = re.compile(rf"\s+|[{CJK}]|\d+(?:[.,:]\d+)+|[^\W_{CJK}]+|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class DiffPiece:
    """A stretch of text that both have, or only the new one, or only the old one."""

    kind: Kind
    text: str


def diff_words(old: str, new: str) -> list[DiffPiece]:
    """Return the pieces in reading order.

    The old text is what is left without the added ones, the new text what is left
    without the removed ones.
    """
    before, after = WORD.findall(old), WORD.findall(new)
    if _is_dear(before, after):
        before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    if _is_dear(before, after):
        before, after = [old], [new]
    joined = groupby(_compare_words(before, after), key=lambda piece: piece.kind)
    return [DiffPiece(kind, "".join(p.text for p in run)) for kind, run in joined]


def _is_dear(before: Sequence[str], after: Sequence[str]) -> bool:
    """Return if comparing takes long: each part is tried with all that are the same."""
    if max(len(before), len(after)) > MAX_WORDS:
        return True
    counts = Counter(before)
    return sum(counts[part] for part in after) > MAX_PAIRS


def _compare_words(before: Sequence[str], after: Sequence[str]) -> Iterator[DiffPiece]:
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag == "equal":
            yield DiffPiece("same", "".join(before[i:j]))
            continue
        if j > i:
            yield DiffPiece("removed", "".join(before[i:j]))
        if m > k:
            yield DiffPiece("added", "".join(after[k:m]))
