"""The forms of the tables of a language, english.py and chinese.py: of wishes here, of
facts in ../facts.
"""

import re
from dataclasses import dataclass

# A sentence with one of these may be Chinese.
HAN = re.compile("[\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True)
class Grammar:
    """Each pattern is tried on one sentence.

    A wish has the form of one at the beginning of a clause: for something (`acts`), or
    against it (`bans`), or that of a statement (`stated`). It is a rule if it lasts
    (`lasting`), or speaks of what all replies are made of: `manner`, which no one bans
    for one reply, and `style`, which is asked for once and for all. What others say
    (`told`) and what is wanted for one answer (`once`) is none. Of questions only
    `requests` ask for something to be done.
    """

    acts: re.Pattern[str]
    bans: re.Pattern[str]
    stated: re.Pattern[str]
    lasting: re.Pattern[str]
    manner: re.Pattern[str]
    style: re.Pattern[str]
    told: re.Pattern[str]
    once: re.Pattern[str]
    requests: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class FactGrammar:
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


def compile_any(*parts: str) -> re.Pattern[str]:
    """What matches where one of the parts does, whatever the case of letters."""
    return re.compile("|".join(f"(?:{part})" for part in parts), re.IGNORECASE)
