"""Wishes for later answers, told by their grammar: what detection.py knows a rule by
when no fixed phrase of patterns.py is in it.
"""

import re

from .chinese import CHINESE
from .english import ENGLISH
from .grammar import HAN, Grammar

GRAMMARS = (ENGLISH, CHINESE)
# How many words may stand before what lasts, where the wish comes after it.
MARKS = ",，:：;；—"
LEAD = re.compile(r"\s*(?:\S+\s+){0,3}\S{0,12}")


def find_wish(sentence: str, *, is_question: bool = False) -> int | None:
    """Where a wish for later answers begins in a sentence, if it has one."""
    found = (_find_wish_in(each, sentence, is_question) for each in _choose(sentence))
    return next((at for at in found if at is not None), None)


def is_told(sentence: str, end: int) -> bool:
    """Whether what ends there is said by others, or of them."""
    return any(each.told.search(sentence, 0, end) for each in _choose(sentence))


def _choose(sentence: str) -> tuple[Grammar, ...]:
    return GRAMMARS if HAN.search(sentence) else GRAMMARS[:1]


def _find_wish_in(grammar: Grammar, sentence: str, is_question: bool) -> int | None:
    if is_question and not grammar.requests.search(sentence):
        return None
    begins = grammar.stated.search(sentence)
    if not begins and not grammar.once.search(sentence):
        begins = _find_lasting(
            grammar, sentence, grammar.bans, grammar.manner
        ) or _find_lasting(grammar, sentence, grammar.acts, grammar.style)
    if begins and not grammar.told.search(sentence, 0, begins.end()):
        return begins.start()
    return None


def _find_lasting(
    grammar: Grammar, sentence: str, form: re.Pattern[str], always: re.Pattern[str]
) -> re.Match[str] | None:
    """The wish of this form, if it lasts, or speaks of what is `always` meant to."""
    found = form.search(sentence)
    if not found or always.search(sentence):
        return found
    return found if _does_last(grammar, sentence, found.start()) else None


def _does_last(grammar: Grammar, sentence: str, at: int) -> bool:
    """Whether the wish that begins there is for all time: what says so comes after it,
    or begins a clause before it."""
    for each in grammar.lasting.finditer(sentence):
        clause = max(sentence.rfind(mark, 0, each.start()) for mark in MARKS) + 1
        if each.start() >= at or LEAD.fullmatch(sentence, clause, each.start()):
            return True
    return False
