"""The sentences of an extractive summary in the form that a request wants."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from memory.engine.search.terms import WORD, extract_terms
from memory.engine.summaries.prompts import STRUCTURE
from memory.engine.summaries.schemas import DATE_SHAPE, TIME_SHAPE
from memory.engine.summaries.summarizer import CARRIED

from .extractive import FACT, SPEAKER, is_personal

MAX_TOPICS = 8
MARKED = re.compile(r"(User|Assistant|Tool)( \((\d{4}-\d\d-\d\d)\)): ")


# What belongs into a field with such a name; the first that fits counts.
FIELDS = [
    (re.compile(name), re.compile(words, re.IGNORECASE))
    for name, words in (
        (
            "issue|problem|blocker|weak|mistake",
            r"problem|issue|broken|\berror|\bfail|stuck|问题|坏了|错误|失败",
        ),
        (
            "solution|decision|understanding|outcome",
            r"fixed|solved|decided|agreed|refund|understood|解决|决定|同意|明白",
        ),
        ("goal|aim", r"\bgoal|want to|plan to|目标|想要|打算"),
        (
            "action|pending|homework|next|todo|task",
            r"need to|have to|must\b|remind|deadline|tomorrow|需要|必须|提醒|截止|明天",
        ),
    )
]
PERSON = re.compile("profile|customer|student|user|person|about")
# Where the rest goes, in this order.
REST = ("fact", "topic", "note", "detail", "")


def find_shape(prompt: str) -> dict[str, Any] | None:
    """Return the object that a summariser's prompt asks for; None: it wants a text."""
    _, found, text = prompt.partition(STRUCTURE)
    try:
        shape, _ = json.JSONDecoder().raw_decode(text) if found else (None, 0)
    except ValueError:
        return None
    # A JSON schema is more than this model understands.
    is_shape = isinstance(shape, dict) and "properties" not in shape
    return shape if is_shape else None


def fill_shape(shape: dict[str, Any], lines: Sequence[str]) -> dict[str, Any]:
    """Return the lines ("User: …") as an object of this shape.

    Raise LookupError where it wants a time and none is known.
    """
    places: dict[str, list[str]] = {name: [] for name in shape}
    for line in _date_lines(lines):
        # What no summary may lose is added again behind the new one.
        if not line.startswith(CARRIED):
            places[_choose_field(line, shape)].append(line)
    return {name: _write_shape(shape[name], places[name]) for name in shape}


def _date_lines(lines: Sequence[str]) -> Iterator[str]:
    """Yield each line with its day.

    A mark such as "(2026-05-07)" is on the first line of a day, and the lines do not
    stay together.
    """
    mark = ""
    for line in lines:
        known = MARKED.match(line)
        mark = known[2] if known else mark
        is_said = mark and SPEAKER.match(line) and not known
        yield line.replace(":", f"{mark}:", 1) if is_said else line


def _choose_field(line: str, shape: dict[str, Any]) -> str:
    """Return the name of the field in which a line belongs."""
    is_own = not line.startswith(("Assistant", "Tool")) and is_personal(line)
    for name_pattern, line_pattern in FIELDS:
        fitting = next(filter(name_pattern.search, shape), "")
        if fitting and line_pattern.search(line):
            return fitting
    if is_own and (fitting := next(filter(PERSON.search, shape), "")):
        return fitting
    order = REST if FACT.search(SPEAKER.sub("", line, count=1)) else ("topic", *REST)
    # A list has room for all that is left, a single value has not.
    names = sorted(shape, key=lambda name: not isinstance(shape[name], list))
    return next(name for word in order for name in names if f"_{word}" in f"_{name}")


def _write_shape(shape: Any, lines: Sequence[str]) -> Any:
    if isinstance(shape, list):
        return list(_write_entries(shape[0], lines))
    if isinstance(shape, dict):
        return {name: _write_shape(each, lines) for name, each in shape.items()}
    if shape.startswith(DATE_SHAPE):
        marks = filter(None, map(MARKED.match, reversed(lines)))
        if not (mark := next(marks, None)):
            raise LookupError("a time")
        return mark[3] + ("T00:00" if shape.startswith(TIME_SHAPE) else "")
    fixed = {"number": 0, "true or false": False}
    kind, *others = re.split(r": | \| ", shape)
    if kind in fixed:
        return fixed[kind]
    if others and " | " in shape:
        return kind
    # Two speakers in one line could not be separated.
    by_user = [line for line in lines if line.startswith("User")]
    first, *others = by_user or lines[:1] or [""]
    return " ".join([first, *(SPEAKER.sub("", each, count=1) for each in others)])


def _write_entries(shape: Any, lines: Sequence[str]) -> Iterator[Any]:
    has_topic = isinstance(shape, dict) and "topic" in shape
    topics = _find_topics(lines) if has_topic else {}
    for line in lines:
        entry = _write_shape(shape, [line])
        yield entry | {"topic": topics[line]} if has_topic else entry


def _find_topics(lines: Sequence[str]) -> dict[str, str]:
    """Return a word for each line.

    Lines that share a word with an earlier line have that line's topic.
    """
    first: list[tuple[set[str], list[str]]] = []
    for line in lines:
        words = {*extract_terms(SPEAKER.sub("", line, count=1))}
        known = max(first, key=lambda topic: len(topic[0] & words), default=None)
        if known and (known[0] & words or len(first) == MAX_TOPICS):
            known[1].append(line)
        else:
            first.append((words, [line]))
    return {line: _name_topic(words, group) for words, group in first for line in group}


def _name_topic(words: set[str], lines: Sequence[str]) -> str:
    """Return the word that most of the lines have.

    Of several the longest, numbers last.
    """
    counts = Counter(term for line in lines for term in {*extract_terms(line)} & words)

    def rank(term: str) -> tuple[int, bool, int, str]:
        return counts[term], not term.isdecimal(), len(term), term

    best = max(counts, key=rank, default="other")
    # A Latin word as it was written; Chinese has no words, but pairs of characters.
    for word in WORD.findall(SPEAKER.sub("", lines[0], count=1)):
        if extract_terms(word) == [best]:
            best = word
    return best[:1].upper() + best[1:]
