"""Doubts whether a term is nowhere in a request: then it is not said.

A wrong "not in what the model was sent" is worse than none.
"""

import re
from bisect import bisect_left
from functools import cached_property
from itertools import combinations, product
from typing import TYPE_CHECKING

from . import values, words
from .values import FoundValue

if TYPE_CHECKING:
    from .lookup import RequestIndex, TokenText

# Words and signs of a reply that computes or rounds, before or after the number.
COMPUTES = re.compile(
    r"[=≈~×÷]|\b(?:total|sum|altogether|average|mean|differen|per|each|about|around|"
    r"roughly|approx|nearly|almost|over|under|estimate|plus|minus|times|half|double|"
    r"equals|left over|remaining|saves?|more than|less than)|"
    r"[共计均差约近余剩]|总|合计|大概|左右|估|每|倍|一半|超过|不到"
)
BREAK = re.compile(r"[.!?](?=\s)|[。！？；\n]")
# A heading, a row of a table or a label: capitals are no names there.
TITLE = re.compile(r"\s*(?:#|\|)|[^\n]{0,80}:\s*$")
AFTER_START = re.compile(r"(?:^|[.!?:。！？：\n|])[\s\"'“”‘’«»()\[\]#>*•–—-]{0,40}\Z")
# Factors between units and periods, and the numbers of a reply that are combined.
FACTORS = (1.609344, 0.3048, 2.54, 0.45359237, 28.3495, 3.785, *range(2, 13))
FACTORS += (24, 30, 52, 60, 365)
MAX_NUMBERS = 40
# So much of the words of a request may be Chinese before names may be translations.
CHINESE_SHARE = 0.15


class Doubts:
    """The doubts about the terms of one reply, by the texts of its request."""

    def __init__(
        self, reply: "TokenText", index: "RequestIndex", question: "TokenText"
    ) -> None:
        self.reply, self.index, self.question = reply, index, question

    @cached_property
    def joined(self) -> str:
        return " ".join(["", *self.index.tokens])

    @cached_property
    def squeezed(self) -> str:
        """The letters and digits of the request alone."""
        return "".join(filter(str.isalnum, self.index.tokens))

    @cached_property
    def is_translated(self) -> bool:
        """True if names may be written in other letters in the request."""
        chinese = sum(map(bool, map(words.CHINESE.match, self.index.tokens)))
        return chinese > CHINESE_SHARE * len(self.index.tokens)

    def lacks_code(self, _span: tuple[int, int], gram: list[str]) -> bool:
        """Only what looks like the number of something, not the name of a standard."""
        code = "".join(gram)
        is_long = len(code) >= 5 and sum(map(str.isdigit, code)) >= 3
        return is_long and code not in self.squeezed

    def lacks_name(self, span: tuple[int, int], gram: list[str]) -> bool:
        """Only names inside of a sentence, and no form of a word that was sent."""
        start, text = span[0], self.reply.text
        line = text[text.rfind("\n", 0, start) + 1 :].partition("\n")[0]
        is_short = len(gram[0]) < 6 and text[slice(*span)].isupper()
        is_first = AFTER_START.search(text[max(0, start - 40) : start])
        if is_short or is_first or TITLE.match(line) or self.is_translated:
            return False
        beginnings = [f" {token[: max(4, len(token) - 3)]}" for token in gram]
        initials = f" {''.join(token[0] for token in gram)} "
        known = any(each in self.joined for each in (*beginnings, initials))
        return not known and "".join(gram) not in self.squeezed

    def lacks_date(self, value: FoundValue, days: set[tuple[int, int]]) -> bool:
        """Only dates that are more than a month from all others, in any year."""
        apart = (abs((m - value.key[1]) * 30.4 + d - value.key[2]) for m, d in days)
        return not any(min(each, 365 - each) < 32 for each in apart)

    def lacks_number(self, value: FoundValue) -> bool:
        """Only what no number of the request, and no sum of two, may stand behind."""
        digits, text = values.significant(value.key), self.reply.folded
        is_year = not value.unit and 1800 <= value.key <= 2200
        before = BREAK.split(text[max(0, value.start - 200) : value.start])[-1]
        sentence = before + BREAK.split(text[value.start : value.end + 200])[0]
        if is_year or len(digits) < 2 or digits in self.squeezed:
            return False
        if COMPUTES.search(sentence):
            return False
        number = float(value.key)
        step = 10.0 ** value.key.normalize().as_tuple().exponent
        first = bisect_left(self.numbers, number - step / 2)
        return self.numbers[first] > number + step / 2

    @cached_property
    def numbers(self) -> list[float]:
        """The numbers of the request, and what follows from two of the reply."""
        sent = {float(each.key) for each in values.read_numbers(self.index.folded)}
        text = f"{self.reply.folded}\n{self.question.folded}"
        said = {float(each.key) for each in values.read_numbers(text)}
        pool = sorted(said - {0.0, 1.0, 100.0})[-MAX_NUMBERS:]
        pairs = [*combinations(pool, 2)]
        sums = (each for a, b in pairs for each in (a + b, abs(a - b)))
        scaled = (
            each
            for a, b in (*pairs, *product(pool, FACTORS))
            for each in (
                *(a * b, a / b, b / a, a * b / 100, 100 * a / b, 100 * b / a),
                *(100 * abs(a - b) / a, 100 * abs(a - b) / b),
            )
        )
        return sorted((*sent, *sums, *scaled, float("inf")))
