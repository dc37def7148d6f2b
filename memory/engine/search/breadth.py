"""The number of messages that a question is about, in English and Chinese.

A question about the whole conversation has words for what to do ("list in order, in
five items, what I brought up") and few for its subject. Only those of its subject are
searched for.
"""

import re
from dataclasses import dataclass

from .terms import WORDS


def _read_patterns(name: str) -> re.Pattern[str]:
    english, chinese = ([p for p in WORDS[name] if p.isascii() == e] for e in (1, 0))
    return re.compile(rf"\b(?:{'|'.join(english)})\b|{'|'.join(chinese)}", re.I)


WIDE, LONG, SAID, TASK = map(_read_patterns, ("many", "whole", "said", "task"))


@dataclass(frozen=True, slots=True)
class Breadth:
    """The number of messages that a question is about.

    Of up to `hits` messages, those with a fit below `min_fit`, a share of the score of
    a message with every word of the question, are taken for chance. Costs and savings:
    docs/memory.md. Each message gets one of `parts` of the room, the best one of
    `best`: otherwise a few long passages would crowd out the rest, and with it the
    newest value.
    """

    hits: int
    min_fit: float
    parts: int
    best: int = 2


FEW, MANY, LINES = (
    Breadth(16, 0.12, 6),
    Breadth(32, 0.08, 24, 4),
    Breadth(96, 0.02, 28, 28),
)


def find_breadth(question: str) -> Breadth:
    """Return LINES for a question about the whole conversation.

    MANY for one about all of a kind or a count, else FEW. MANY and LINES show a line of
    each message, LINES of more messages.
    """
    return LINES if LONG.search(question) else MANY if WIDE.search(question) else FEW


def find_subject(question: str) -> str:
    """Return the question without the words for what to do, if it is a long one."""
    subject = TASK.sub(" ", question) if LONG.search(question) else question
    return subject if re.search(r"\w", subject) else question
