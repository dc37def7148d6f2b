"""The terms of a reply, looked up in the texts of its request: no model is asked.

A term is a value (number, date), a code, a name, or words that both texts share and
that are no turn of speech. What is in the request is found in any form of the same
value; that a term is nowhere is said only where no doubt is left.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice, pairwise
from typing import Any, NamedTuple
from unicodedata import normalize

from . import values, words
from .doubts import Doubts

TOKEN = re.compile(
    r"\d+|[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]"
    r"|[^\W\d_\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+"
    r"|[。！？；，、：\n]|[.!?;:](?=\s)"
)
# Bounds: characters of a reply that are read, words of one kind, terms, places of one.
MAX_CHARS, MAX_SAID, MAX_TERMS, MAX_PLACES = 20_000, 200, 80, 3
# Places of a pair of words that are compared; words in a row; texts that share them.
MAX_STARTS, MAX_RUN, MAX_TEXTS = 24, 40, 3

FENCED = re.compile(r"^(`{3,}|~{3,}).*?(?:^\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[([^\]\n]{0,300})\]\([^)\s]{0,2000}\)")
# Numbers of lists, of notes and of messages, and marks of Markdown.
MARKS = re.compile(
    r"^\s{0,12}\d{1,3}[.)、](?=\s)|\[\^?\d{1,3}\]|#\d{1,9}\b|\*\*|~~|`"
    r"|(?<!\w)[*_]|[*_](?!\w)",
    re.MULTILINE,
)
CODE = re.compile(
    r"(?<![\w@./-])(?:[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,4}"
    r"|[a-z0-9]+(?:[-_./:][a-z0-9]+)*)(?![\w@])",
    re.IGNORECASE | re.ASCII,
)
# Values and ordinals are no codes: 12km, 3rd, 10am, 3-4. Times and phone numbers are.
NO_CODE = re.compile(r"[\d.,]*\d[a-z]{1,3}|[\d.,:/-]+", re.IGNORECASE)
FIGURES = re.compile(
    r"\d\d?:\d\d|(?:\d{1,4}\.){2,5}\d{1,6}|\d{3,5}(?:-\d{3,5}){1,4}|\d{3,}-\d{4,}"
)
SIGNS = re.compile(r"[\d_@]|[a-z][A-Z]")
CAPITAL = r"[A-Z\u00c0-\u00de][^\W\d_]*(?:['’][^\W\d_]{2,})?"
BETWEEN = r"(?:[ &-]|\. )(?:(?:of|de|la|del|van|von|der|da|di|du) )?"
NAME = re.compile(rf"\b{CAPITAL}(?:{BETWEEN}{CAPITAL}){{0,5}}")

Span = tuple[int, int]


class TermPlace(NamedTuple):
    """A place of a term: the number of the text, and where in it."""

    text: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Term:
    """A term as a reply has it, and its places, the best first; none: nowhere."""

    text: str
    start: int
    places: tuple[TermPlace, ...] = ()


KnownValues = dict[Any, list[values.FoundValue]]
Found = Iterator[tuple[Span, Sequence[TermPlace], bool]]


class TokenText:
    """A text with its tokens in their normal form."""

    def __init__(self, text: str) -> None:
        self.text, self.folded = text, values.fold(text)
        self.tokens: list[str] = TOKEN.findall(self.folded)

    @cached_property
    def spans(self) -> list[Span]:
        return [found.span() for found in TOKEN.finditer(self.folded)]

    def find_span(self, at: int, size: int) -> Span:
        return self.spans[at][0], self.spans[at + size - 1][1]


class RequestIndex(TokenText):
    """All texts of a request as one, with the places of the tokens of a reply."""

    def __init__(self, texts: Sequence[str], reply: TokenText) -> None:
        super().__init__("\n".join(texts))
        self.starts = [0]
        for text in texts:
            self.starts.append(self.starts[-1] + len(text) + 1)
        wanted = {t for t in reply.tokens if t.isalnum() and t not in words.STOP_WORDS}
        self.places: dict[str, list[int]] = defaultdict(list)
        for at, token in enumerate(self.tokens):
            if token in wanted:
                self.places[token].append(at)
        known = self.places.keys() | words.STOP_WORDS
        shared = {
            pair
            for pair in pairwise(reply.tokens)
            if known.issuperset(pair) and not all(map(words.is_edge, pair))
        }
        self.pairs: dict[tuple[str, str], list[int]] = defaultdict(list)
        for at, pair in enumerate(pairwise(self.tokens)):
            if pair in shared:
                self.pairs[pair].append(at)

    def make_place(self, start: int, end: int) -> TermPlace:
        text = bisect_right(self.starts, start) - 1
        return TermPlace(text, start - self.starts[text], end - self.starts[text])

    def find_places(self, gram: Sequence[str]) -> list[TermPlace]:
        """Return the places of these tokens in a row."""
        size, rare = len(gram), gram.index(max(gram, key=len))
        starts = (at - rare for at in self.places.get(gram[rare], ()))
        found = (at for at in starts if self.tokens[at : at + size] == gram)
        return [
            self.make_place(*self.find_span(at, size))
            for at in islice(found, MAX_STARTS)
        ]

    def find_longest(
        self, tokens: Sequence[str], at: int
    ) -> tuple[int, list[TermPlace]]:
        """Return the most tokens from `at` that are in a row here, and where."""
        starts = self.pairs.get((*tokens[at : at + 2],), ())
        sizes = {
            start: self._measure(tokens[at:], start) for start in starts[:MAX_STARTS]
        }
        best = max(sizes.values(), default=0)
        while best > 1 and words.is_edge(tokens[at + best - 1]):
            best -= 1
        found = [start for start, size in sizes.items() if size >= best > 1]
        return best, [self.make_place(*self.find_span(start, best)) for start in found]

    def _measure(self, tokens: Sequence[str], start: int) -> int:
        pairs = zip(tokens, self.tokens[start : start + len(tokens)], strict=False)
        ends = (
            n for n, (one, two) in enumerate(pairs) if one != two or not one.isalnum()
        )
        return next(ends, min(len(tokens), len(self.tokens) - start))


class Lookup:
    """The terms of one reply, found step by step; each place is taken by one term.

    `ranks`: of the texts, the best is the lowest; `has_unread`: the model was also sent
    what has no text, as an image; `today`: year, month and day of the request.
    """

    def __init__(
        self,
        reply: str,
        texts: Sequence[str],
        question: str,
        *,
        ranks: Sequence[int],
        today: tuple[int, int, int],
        has_unread: bool,
    ) -> None:
        self.reply = TokenText(prepare_reply(reply[:MAX_CHARS]))
        self.question = TokenText(question)
        self.index = RequestIndex(texts, self.reply)
        self.doubts = Doubts(self.reply, self.index, self.question)
        self.ranks, self.today, self.has_unread = ranks, today, has_unread
        self.asked = "\0".join(["", *self.question.tokens, ""])
        self.taken = bytearray(len(self.reply.text))

    def run(self) -> list[Term]:
        """Return the terms in the order of the reply."""
        terms: dict[str, Term] = {}
        looks = (
            self.list_codes,
            self.list_dates,
            self.list_numbers,
            self.list_names,
            self.list_shared_words,
        )
        found = (islice(look(), MAX_SAID) for look in looks)
        for span, places, is_nowhere in chain.from_iterable(found):
            self.taken[slice(*span)] = b"\1" * (span[1] - span[0])
            best = sorted(places, key=lambda each: (self.ranks[each.text], -each.text))
            if best or (is_nowhere and not self.has_unread):
                text = self.reply.text[slice(*span)]
                term = Term(text, span[0], tuple(best[:MAX_PLACES]))
                terms.setdefault(values.fold(text), term)
        return sorted(terms.values(), key=lambda term: term.start)[:MAX_TERMS]

    def list_codes(self) -> Found:
        for found in CODE.finditer(self.reply.text):
            if is_code(found[0]):
                yield from self.look_up_words(found.span(), self.doubts.lacks_code)

    def list_names(self) -> Found:
        for found in NAME.finditer(self.reply.text):
            said = [*TOKEN.finditer(self.reply.folded, *found.span())]
            while said and said[0][0] in words.PLAIN_NAMES:
                said.pop(0)
            while said and said[-1][0] in words.PLAIN_NAMES:
                said.pop()
            if not said:
                continue
            gram = [each[0] for each in said]
            spans = [(said[0].start(), said[-1].end())]
            if not self.index.find_places(gram) and any(
                map(self.index.places.get, gram)
            ):
                spans = [each.span() for each in said]
            for span in spans:
                yield from self.look_up_words(span, self.doubts.lacks_name)

    def look_up_words(
        self, span: Span, lacks: Callable[[Span, list[str]], bool]
    ) -> Found:
        gram = TOKEN.findall(self.reply.folded[slice(*span)])
        if any(self.taken[slice(*span)]) or len("".join(gram)) < 3:
            return
        is_asked = "\0".join(["", *gram, ""]) in self.asked
        places = [] if is_asked else self.index.find_places(gram)
        yield span, places, not (places or is_asked) and lacks(span, gram)

    def list_dates(self) -> Found:
        for span, value, known, same in self.list_values(values.read_dates):
            days = {self.today[1:], *known}
            yield span, same, not same and self.doubts.lacks_date(value, days)

    def list_numbers(self) -> Found:
        for span, value, _known, same in self.list_values(values.read_numbers):
            yield span, same, not same and self.doubts.lacks_number(value)

    def list_values(
        self, read: Callable[..., Iterator[values.FoundValue]]
    ) -> Iterator[tuple[Span, values.FoundValue, KnownValues, list[TermPlace]]]:
        """Yield values the question has not, all that were sent, and their places."""
        found = read(self.reply.folded)
        free = (each for each in found if not any(self.taken[each.start : each.end]))
        said = [*islice((each for each in free if each.tells), MAX_SAID)]
        asked = [*read(self.question.folded)] if said else []
        wanted = {values.significant(each.key) for each in said}
        known: KnownValues = defaultdict(list)
        for each in read(self.index.folded, wanted) if said else ():
            known[each.group].append(each)
        for value in said:
            if any(values.is_same(value, each) for each in asked):
                continue
            alike = known.get(value.group, ())
            same = [each for each in alike if values.is_same(value, each)]
            same = [each for each in same if each.unit == value.unit] or same
            places = [self.index.make_place(each.start, each.end) for each in same]
            yield (value.start, value.end), value, known, places

    def list_shared_words(self) -> Found:
        at, tokens = 0, self.reply.tokens
        while at < len(tokens) - 1:
            size, places = self.index.find_longest(tokens, at)
            run, span = tokens[at : at + size], self.reply.find_span(at, max(size, 1))
            is_asked = "\0".join(["", *run, ""]) in self.asked
            is_few = 0 < len({each.text for each in places}) <= MAX_TEXTS
            tells = is_few and not words.is_edge(run[0]) and words.carries_meaning(run)
            if tells and not is_asked and not any(self.taken[slice(*span)]):
                yield span, places, False
            at += 1 if size < 2 or words.is_edge(run[0]) else size


def prepare_reply(text: str) -> str:
    """Return the words of a reply, without pieces of code and marks of Markdown."""
    text = normalize("NFC", FENCED.sub("\n", text))
    return MARKS.sub("", LINK.sub(r"\1", text))


def is_code(text: str) -> bool:
    """Return whether a word is an identifier: digits and letters, or parts of one."""
    if NO_CODE.fullmatch(text):
        return bool(FIGURES.fullmatch(text)) and not any(values.read_dates(text))
    return bool(SIGNS.search(text))
