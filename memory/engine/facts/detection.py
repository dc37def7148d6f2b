"""Facts about the user in the user's own words, found without a model.

Where users live, what they do, eat, have and like, in English and Chinese. A fact is a
part of a clause that has the speaker, or one of the same household, as its subject.
Statements about others, or that are true only today, quoted, acted or asked, are none;
nor is anything in a sentence that gives orders, so no instruction can pass as a fact.
"""

import re
from dataclasses import dataclass

from ..rules.detection import SENTENCE_CHARS, mask_quotes, split_sentences
from ..rules.grammar import HAN
from .chinese import CHINESE
from .english import ENGLISH

# A longer one is a story.
MAX_CHARS = 200
# Facts of one message: more would be a list to tick off.
MOST = 3

QUESTION = re.compile(r"[?？]\s*$|(?:吗|呢)[。！]?\s*$")
MARKS = " \t.!。！…~～"


@dataclass(frozen=True, slots=True)
class FactSpan:
    """The place of a fact in a text, from `start` to `end`."""

    start: int
    end: int


def find_facts(text: str) -> list[FactSpan]:
    """Return at most MOST facts of a user's message, in their order."""
    masked = mask_quotes(text)
    if any(grammar.played.search(masked) for grammar in (ENGLISH, CHINESE)):
        return []
    found: list[FactSpan] = []
    for start, end in split_sentences(masked):
        sentence = masked[start : min(end, start + SENTENCE_CHARS)]
        if place := _read_fact(sentence):
            found.append(FactSpan(start + place[0], start + place[1]))
        if len(found) == MOST:
            break
    return found


def _read_fact(sentence: str) -> tuple[int, int] | None:
    """Return the span of the first fact in a sentence, or None."""
    grammar = CHINESE if HAN.search(sentence) else ENGLISH
    if grammar.orders.search(sentence):
        return None
    for clause in grammar.clauses.finditer(sentence):
        at = clause.end()
        if not grammar.facts.match(sentence, at):
            continue
        after = grammar.ends.search(sentence, at + 1)
        words = sentence[at : after.start() if after else None].rstrip(MARKS)
        is_asked = QUESTION.search(words)
        is_reported = grammar.reported.search(sentence, 0, clause.start())
        if is_asked or is_reported or grammar.passing.search(words) or "\x00" in words:
            continue
        if 0 < len(words) <= MAX_CHARS:
            return at, at + len(words)
    return None
