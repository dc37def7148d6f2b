"""Values that change in a conversation: of two statements about the same thing, in the
same unit, the later one holds.

Without a model this is a guess: two sentences with values of one unit, which share
enough of the words of the question that found them. It marks, and removes nothing.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

from .terms import extract_terms

MONTHS = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
)
NUMBERS = (
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
)
DIGITS = r"\d[\d,]*+(?:\.\d++)?+"
# Each kind of value is of a unit of its own; a count is of the words after it.
VALUE = re.compile(
    rf"""
    (?<! [a-z0-9_.,] ) (?:
        (?P<time> \d{{1,2}} (?: :\d\d (?: \s?[ap]\.?m\b )?+ | \s?[ap]\.?m\b ) )
      | (?P<date> (?:{MONTHS})\.? \s \d{{1,2}} \b | \d{{1,2}}月\d{{1,2}}[日号] )
      | (?P<money> [$€£¥] \s? {DIGITS} | {DIGITS} \s? (?: dollars | euros | [元块] ) )
      | (?P<share> {DIGITS} \s? (?: % | percent\b ) )
      | (?P<count> {DIGITS} (?: \s?[-–]\s? {DIGITS} )?+ | (?: {"|".join(NUMBERS)} ) \b )
        (?P<unit> (?: [ -]? [^\W\d_]++ ){{1,3}} )
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)
CODE = re.compile(r"^(`{3,}|~{3,}).*?(?:^\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
SENTENCE = re.compile(r"(?<=[.!?])\s+|[。！？；\n]+")
# What is looked at: so many characters of a text, and so many statements.
MOST_CHARS, MOST_STATEMENTS = 4_000, 60
# Words of the question that both sentences have: so many, and this share of them.
LEAST_SHARED, SHARED = 2, 0.3


@dataclass(frozen=True, slots=True)
class Value:
    """`unit`: "money", "time" and the like, or the words after a count."""

    number: str
    unit: frozenset[str]


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of message `seq` with values, and the words that say of what."""

    seq: int
    role: str
    values: frozenset[Value]
    subject: frozenset[str]


def read_statements(seq: int, role: str, text: str) -> Iterator[Statement]:
    """The sentences with values, without those in code."""
    for sentence in SENTENCE.split(CODE.sub("\n", text[:MOST_CHARS])):
        values = frozenset(_read_values(sentence))
        if values:
            words = (term for term in extract_terms(sentence) if not term[0].isdigit())
            yield Statement(seq, role, values, frozenset(words))


def _read_values(sentence: str) -> Iterator[Value]:
    for match in VALUE.finditer(sentence):
        kind = str(match.lastgroup)
        if kind == "unit":
            number, unit = match["count"], frozenset(extract_terms(match["unit"]))
        else:
            number, unit = match[kind], frozenset([kind])
        number = "".join(number.casefold().replace(",", "").split())
        if unit:
            if number in NUMBERS:
                number = str(NUMBERS.index(number) + 1)
            yield Value(number, unit)


def find_newest(
    statements: Iterable[Statement], asked: frozenset[str]
) -> dict[int, int]:
    """Of which message the values are replaced by which: the last one that gives a
    new value of the same unit to what the question asks for. Both are of one role."""
    least = max(LEAST_SHARED, SHARED * len(asked))
    told = [each for each in statements if len(each.subject & asked) >= least]
    # The latest first.
    told = sorted(told, key=lambda each: -each.seq)[:MOST_STATEMENTS]
    replaced: dict[int, int] = {}
    for new, old in combinations(told, 2):
        shared = new.subject & old.subject & asked
        is_same = new.role == old.role and len(shared) >= least
        if is_same and _has_changed(old.values, new.values):
            replaced.setdefault(old.seq, new.seq)
    return {old: new for old, new in replaced.items() if old != new}


def _has_changed(old: Iterable[Value], new: Iterable[Value]) -> bool:
    """Whether there is an old value of a unit of which the new ones are all others."""
    for value in old:
        numbers = [each.number for each in new if each.unit & value.unit]
        if numbers and value.number not in numbers:
            return True
    return False
