"""Wishes for later answers, recognised by their grammar.

detection.py uses them where no set phrase of patterns.py matches.
"""

import re

from .chinese import CHINESE
from .english import ENGLISH
from .grammar import HAN, Grammar

GRAMMARS = (ENGLISH, CHINESE)
# Characters after the beginning of a wish that may show that it is reported: 教 begins
# one, 教练让我 does not.
AHEAD = 4
# The words that may come before a lasting term, where the wish follows it.
MARKS = ",，:：;；—"
LEAD = re.compile(r"\s*(?:\S+\s+){0,3}\S{0,12}")


def find_wish(sentence: str, *, is_question: bool = False) -> int | None:
    """Return where a wish for later answers begins in a sentence, or None."""
    found = (_find_wish_in(each, sentence, is_question) for each in _choose(sentence))
    return next((at for at in found if at is not None), None)


def is_reported(sentence: str, end: int) -> bool:
    """Return whether the words up to `end` are reported speech, or about others."""
    return any(each.reported.search(sentence, 0, end) for each in _choose(sentence))


def is_chinese_about_one_text(sentence: str) -> bool:
    """Return whether a sentence is in Chinese and about a single text or answer.

    Set phrases in English are rules beside such words, too: "make it a thing that …".
    """
    return bool(HAN.search(sentence) and CHINESE.once.search(sentence))


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
    if begins and not grammar.reported.search(sentence, 0, begins.end() + AHEAD):
        return begins.start()
    return None


def _find_lasting(
    grammar: Grammar, sentence: str, form: re.Pattern[str], always: re.Pattern[str]
) -> re.Match[str] | None:
    """Return the wish of this form, if it lasts or is about an `always` subject."""
    found = form.search(sentence)
    if not found or always.search(sentence):
        return found
    return found if _does_last(grammar, sentence, found.start()) else None


def _does_last(grammar: Grammar, sentence: str, at: int) -> bool:
    """Return whether the wish that begins there is meant for all time.

    The words that say so come after it, or begin a clause before it.
    """
    for each in grammar.lasting.finditer(sentence):
        clause = max(sentence.rfind(mark, 0, each.start()) for mark in MARKS) + 1
        if each.start() >= at or LEAD.fullmatch(sentence, clause, each.start()):
            return True
    return False
