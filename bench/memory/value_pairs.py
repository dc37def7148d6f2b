"""python -m bench.memory.value_pairs [tuned|kept]: of pairs of statements about a value
that has changed, in how many the later one is marked as the newest; and of pairs that
look alike, but are of two things, in how many it is marked wrongly.

Tune on the half "tuned" alone. The half "kept" is for reports.
"""

import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from memory.engine.search.ranking import read_query
from memory.engine.search.values import find_changes, read_statements

from .rule_sentences import HALVES

FOLDER = Path(__file__).resolve().parents[2] / "tests/bench"
FILES = ("value_pairs", "look_alikes", "everyday_pairs")
SEED = 29


@dataclass(frozen=True, slots=True)
class Pair:
    """`has_changed`: whether `new` replaces what `old` says."""

    language: str
    kind: str
    question: str
    old: str
    new: str
    has_changed: bool


def read_pairs(name: str) -> Iterator[Pair]:
    language = kind = ""
    for line in (FOLDER / f"{name}.txt").read_text().splitlines():
        if line.startswith("["):
            language, kind = line.strip("[]").split()
        elif line[:2] in ("+ ", "- "):
            question, old, new = line[2:].split(" | ")
            yield Pair(language, kind, question, old, new, line[0] == "+")


def take_half(half: str, name: str = FILES[0]) -> list[Pair]:
    """Return half of each language and label."""
    chance = random.Random(SEED)
    taken = []
    for language in ("en", "zh"):
        for has_changed in (True, False):
            pairs = [
                each
                for each in read_pairs(name)
                if (each.language, each.has_changed) == (language, has_changed)
            ]
            chance.shuffle(pairs)
            start = HALVES.index(half)
            taken += pairs[start::2]
    return taken


def is_marked(pair: Pair) -> bool:
    """Return whether the later statement is taken for the newer value."""
    told = [
        statement
        for seq, text in enumerate((pair.old, pair.new), start=1)
        for statement in read_statements(seq, "user", text)
    ]
    changes = find_changes(told, read_query(pair.question).terms)
    return {old: change.newest for old, change in changes.items()} == {1: 2}


def score(pairs: Sequence[Pair]) -> tuple[float, int]:
    """The share of the changes that are marked, and how many others are."""
    changes = [each for each in pairs if each.has_changed]
    marked = sum(is_marked(each) for each in changes)
    wrong = sum(is_marked(each) for each in pairs if not each.has_changed)
    return marked / len(changes), wrong


def main() -> None:
    for name, half in product(FILES, sys.argv[1:] or HALVES):
        for language in ("en", "zh"):
            pairs = [
                each for each in take_half(half, name) if each.language == language
            ]
            share, wrong = score(pairs)
            others = sum(not each.has_changed for each in pairs)
            print(
                f"{name:12} {half:6} {language}  marked {share:4.0%}  "
                f"wrongly {wrong} of {others}"
            )


if __name__ == "__main__":
    main()
