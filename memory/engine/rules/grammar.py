"""The structure of a language's tables: of wishes for rules, of facts for ../facts.

The tables are in english.py and chinese.py.
"""

import re
from dataclasses import dataclass

# A sentence with one of these may be Chinese.
HAN = re.compile("[\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True)
class Grammar:
    """The patterns of wishes in a language. Each pattern is tried on one sentence.

    A wish begins a clause: it asks for something (`acts`), bans it (`bans`), or is put
    as a statement (`stated`). It is a rule if it lasts (`lasting`), or is about what
    all replies are made of: `manner`, which is never banned for one reply only, and
    `style`, which is requested once for all replies. Reported speech (`reported`) and
    wishes for one answer (`once`) are not rules. Of questions only `requests` ask for
    something to be done.
    """

    acts: re.Pattern[str]
    bans: re.Pattern[str]
    stated: re.Pattern[str]
    lasting: re.Pattern[str]
    manner: re.Pattern[str]
    style: re.Pattern[str]
    reported: re.Pattern[str]
    once: re.Pattern[str]
    requests: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class FactGrammar:
    """The patterns of facts in a language.

    A fact begins a clause (`clauses` find the beginnings), has a form of `facts`, and
    extends to `ends` or to the end of its sentence. It is dropped if its words are only
    about a day or this conversation (`passing`), if `reported` or `orders` are in its
    sentence, or in a message that plays a part (`played`).
    """

    clauses: re.Pattern[str]
    facts: re.Pattern[str]
    ends: re.Pattern[str]
    passing: re.Pattern[str]
    reported: re.Pattern[str]
    orders: re.Pattern[str]
    played: re.Pattern[str]


def compile_any(*parts: str) -> re.Pattern[str]:
    """Compile a pattern that matches any of the parts, ignoring case."""
    return re.compile("|".join(f"(?:{part})" for part in parts), re.IGNORECASE)
