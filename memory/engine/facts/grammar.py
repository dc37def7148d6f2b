"""What tells a fact about the speaker, for each language: english.py and chinese.py."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Grammar:
    """A fact begins a clause (`clauses` find where one begins), has the form of one of
    `facts`, and goes on to `ends` or to the end of its sentence. It is none if its
    words are only of a day or of this conversation (`passing`), if `told` or `orders`
    are in its sentence, or in a message that plays a part (`played`).
    """

    clauses: re.Pattern[str]
    facts: re.Pattern[str]
    ends: re.Pattern[str]
    passing: re.Pattern[str]
    told: re.Pattern[str]
    orders: re.Pattern[str]
    played: re.Pattern[str]
