"""The sentences that the demo model was sent, with their speaker and place.

They are read from the messages of a request, including the quoted history that comes in
elements such as <summary messages="1-20" version="3">…</summary>.
"""

import html
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from configparser import ConfigParser
from dataclasses import dataclass
from pathlib import Path

from langchain_core.messages import BaseMessage

from memory.engine.compose import read_quotations
from memory.engine.search.terms import extract_terms

from .extractive import SPEAKER, is_question, read_lines, split_sentences

FENCES = ("history", "pinned", "facts", "rules", "recalled")
# Files that are attached to a message (memory/engine/attachments.py).
FILE = re.compile(
    r"<attachment-(\w{8,64}) n=\"\d{1,9}\" name=(\"[^\"\n]{0,400}\"|'[^'\n]{0,400}')"
    r"[^<>\n]{0,400}>\n"
)
FILE_END = re.compile(r"\n?</attachment-\w{8,64}>")
WORDS = ConfigParser(allow_no_value=True, delimiters=("\0",))
WORDS.read(Path(__file__).with_name("words.txt"), "utf-8")
ASKING = frozenset(extract_terms(" ".join(WORDS["asking"])))
RELATED = [frozenset(extract_terms(group)) for group in WORDS["related"]]


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """A message, or a summary of a range of messages; 0: not known."""

    first: int = 0
    last: int = 0
    version: int = 0


@dataclass(frozen=True, slots=True)
class DemoStatement:
    """A sentence of a message, a file or a summary, with its place."""

    text: str
    is_user: bool
    place: SourcePosition
    # The name of the file that says it, in a passage that was found.
    file: str = ""

    @property
    def is_question(self) -> bool:
        return is_question(self.text)


@dataclass(frozen=True, slots=True)
class DemoContext:
    """The statements before the newest message, oldest first.

    `summaries` and `message_count` are the sources that they come from.
    """

    statements: list[DemoStatement]
    summaries: list[SourcePosition]
    message_count: int


def read_sent(messages: Sequence[BaseMessage]) -> DemoContext:
    statements: list[DemoStatement] = []
    count = 0
    for message in messages:
        if fenced := find_fenced(message):
            statements += read_fenced(fenced[1])
        elif message.type in ("human", "ai"):
            count += 1
            statements += read_message(message)
    summaries = dict.fromkeys(s.place for s in statements if s.place.version)
    # Pinned and recalled messages are older than the window, and may be in it, too.
    statements.sort(key=lambda s: s.place.first or math.inf)
    return DemoContext(list(dict.fromkeys(statements)), list(summaries), count)


def find_fenced(message: BaseMessage) -> tuple[str, str] | None:
    """Return "history" and the text between <history> and </history> at its end.

    None for a message without such a text, or with one of no name in FENCES.
    """
    for name in FENCES if message.type == "human" else ():
        if message.text.endswith(f"\n</{name}>"):
            _, opened, body = message.text.partition(f"<{name}>\n")
            return (name, body) if opened else None
    return None


def read_fenced(text: str) -> Iterator[DemoStatement]:
    """Yield the statements of the summaries and messages that a text quotes."""
    for quoted in read_quotations(text):
        first, last = quoted.span
        if quoted.tag != "summary":
            is_user = quoted.role not in ("assistant", "tool")
            file = quoted.attributes.get("name", "")
            place = SourcePosition(first)
            yield from _split_statements(quoted.text, is_user, place, file)
            continue
        version = quoted.attributes.get("version", "")[:9]
        place = SourcePosition(first, last, int(version) if version.isdecimal() else 0)
        for line in read_lines(quoted.text):
            match = SPEAKER.match(line)
            speaker = match.group() if match else ""
            is_user = not speaker or speaker.startswith("User")
            yield from _split_statements(line[len(speaker) :], is_user, place)


def split_files(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the typed text of a message, and the names and texts of its files."""
    marks = list(FILE.finditer(text))
    if not marks:
        return text, []
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    files = [
        (html.unescape(mark[2][1:-1]), FILE_END.sub("", text[mark.end() : end]).strip())
        for mark, end in zip(marks, ends, strict=True)
    ]
    return text[: marks[0].start()].strip(), files


def read_message(message: BaseMessage) -> Iterator[DemoStatement]:
    number = message.id or ""
    place = SourcePosition(int(number)) if number.isdecimal() else SourcePosition()
    typed, files = split_files(message.text)
    for text in (typed, *(text for _, text in files)):
        yield from _split_statements(text, message.type == "human", place)


def _split_statements(
    text: str, is_user: bool, place: SourcePosition, file: str = ""
) -> Iterator[DemoStatement]:
    return (DemoStatement(each, is_user, place, file) for each in split_sentences(text))


def find_similar(
    statements: Sequence[DemoStatement], query: str
) -> list[DemoStatement]:
    """Return statements that share words with the query, best first, then newest.

    A statement of the assistant has to have all the words: it mostly repeats the user.
    """
    asked = find_terms(query)
    related = {t for group in RELATED if group & asked for t in group} - asked
    found = [find_terms(s.text) for s in statements]
    counts = Counter(t for held in found for t in held & (asked | related))
    hits = []
    for position, (statement, held) in enumerate(zip(statements, found, strict=True)):
        shared = held & (asked | related)
        is_close = statement.is_user or shared == asked
        if shared and is_close and not statement.is_question:
            score = sum(
                math.log(1 + len(statements) / counts[t]) * (1 if t in asked else 0.4)
                for t in shared
            )
            # Of two equal ones the shorter says it more clearly.
            score /= 1 + 0.01 * len(held)
            hits.append((score, statement.is_user, position, statement))
    hits.sort(key=lambda hit: hit[:3], reverse=True)
    return [statement for *_, statement in hits]


def find_terms(text: str) -> set[str]:
    return {*extract_terms(text.replace("’", "'"))} - ASKING
