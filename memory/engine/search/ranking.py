"""Search over messages: BM25F in plain Python, for English and Chinese.

A message is as good as its best passage. A passage is found by its own words, by those
of its neighbours and by the date of its message. Any word of the query may match.

An answer rarely repeats its question, so it borrows the words of a question before it.
Other messages borrow little: where each message states a fact, their neighbours state
others.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import log
from typing import NamedTuple, Self

from . import passages
from .breadth import LONG, SAID, find_subject
from .days import read_asked_days, read_day_terms
from .terms import WORD, date_terms, extract_terms

K1 = 1.2
# Share of the length normalisation, in every field.
B = 0.6
TEXT_WEIGHT, NEIGHBOUR_WEIGHT, DATE_WEIGHT = 1.0, 0.3, 0.5
# The words of a question count more in the other side's next message.
ANSWER_WEIGHT = 0.5
# Where fewer messages than this share have a question mark, neighbours are of other
# subjects, and their words count less: where none has one, a third as much in 20
# messages, a sixth in 50. A file has one speaker and no questions, but its passages
# belong together.
ASKING_SHARE = 0.1
# A passage with a question mark states less. It has this term beside its words.
ASKS, ASKING_WEIGHT = "?", 0.9
QUESTION_MARK = re.compile(r"[?？]")
# A passage has up to REACH neighbours on each side, but none beyond others that have
# NEAR terms together: those of two short messages, or of one passage of a long one.
REACH, NEAR = 2, 20
# A side that says a fifth as much as the other states what there is to remember; the
# other elaborates. Its messages count more, by this power of the ratio of the means, if
# they have a word of the question: "Noted." has only borrowed words.
BREVITY_POWER = 0.05
# And by this power if the question is about the user who asks: "my", "I".
OWN_POWER = 0.3
MOST_BREVITY = 20
# The weight of the other side where the question is about what the user has said.
UNSAID_WEIGHT = 0.2
OWN_WORDS = frozenset(
    ["i", "my", "me", "mine", "we", "our", "ours", "us", "我", "我们", "咱"]
)


# The part of a text that is read: results of tools can have megabytes. PostgreSQL's
# tsvector is limited to one; no typed message has as many words.
MAX_CHARS, MAX_WORDS = 200_000, 50_000


class TermCounts(NamedTuple):
    """The counts of a text's terms or of the wanted ones; `total` is of all terms."""

    counts: Mapping[str, int]
    total: int

    @classmethod
    def from_terms(cls, found: Sequence[str]) -> Self:
        return cls(Counter(found), len(found))

    def narrow_to(self, wanted: Iterable[str]) -> Self:
        counts = {term: self.counts[term] for term in wanted if term in self.counts}
        return self._replace(counts=counts)


@dataclass(frozen=True, slots=True)
class Document:
    """A message of the archive; `speaker` is a role. It has at least one passage."""

    seq: int
    speaker: str
    passages: tuple[TermCounts, ...]
    dates: TermCounts

    @classmethod
    def from_text(
        cls, seq: int, speaker: str, text: str, created_at: datetime | None = None
    ) -> Self:
        words = map(TermCounts.from_terms, read_passages(text[:MAX_CHARS]))
        dates = TermCounts.from_terms(read_dates(text, created_at))
        return cls(seq, speaker, tuple(words), dates)

    def narrow_to(self, wanted: Iterable[str]) -> Self:
        """Return the document with these terms alone.

        The others still count for the length.
        """
        passages = tuple(words.narrow_to(wanted) for words in self.passages)
        return replace(self, passages=passages, dates=self.dates.narrow_to(wanted))


def read_dates(text: str, created_at: datetime | None) -> list[str]:
    """Return the terms of a message's date and of the days that it names."""
    return [*date_terms(created_at), *read_day_terms(text, created_at)] if text else []


def read_passages(text: str) -> Iterator[list[str]]:
    """Yield the terms of each passage, up to MAX_WORDS in all."""
    room = MAX_WORDS
    for start, end in passages.split_passages(text):
        words = extract_terms(text[start:end])[:room]
        room -= len(words)
        yield [*words, ASKS] if QUESTION_MARK.search(text, start, end) else words
        if not room:
            return


# The passages that have a term, and how often.
Postings = dict[str, dict[int, int]]


@dataclass(frozen=True, slots=True)
class Corpus:
    """The size of a whole archive of which only some documents are ranked.

    `having` maps a term to the number of documents that have it.
    """

    size: int
    having: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Query:
    """The terms of a question; `is_own`: it is about the user who asks.

    `is_said`: about many things that the user has said.
    """

    terms: Collection[str]
    is_own: bool = False
    is_said: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """A message that was found.

    `fit`: the score, before it is weighted by the speaker, as a share of the score of a
    message with every word of the query. `passage`: the index of the best passage.
    """

    seq: int
    score: float
    fit: float
    passage: int = 0


def read_query(text: str, at: datetime | None = None) -> Query:
    """Return the query of a question that is asked at this time.

    Without a time, "yesterday" is not read as a day.
    """
    is_own = not OWN_WORDS.isdisjoint(WORD.findall(text.casefold())) or "我" in text
    is_said = bool(LONG.search(text) and SAID.search(text))
    text, days = read_asked_days(find_subject(text), at)
    return Query(frozenset([*extract_terms(text), *days]), is_own, is_said)


class Index:
    """Documents in the order of the conversation, to be ranked.

    They are a part of a corpus, which decides how rare a word is. There are plain lists
    with an item for each passage: a search makes an index of hundreds of passages.
    """

    def __init__(self, documents: Iterable[Document], corpus: Corpus) -> None:
        self.corpus = corpus
        self.documents = [*documents]
        # For each speaker, the number of terms of each message.
        self._said: dict[str, list[int]] = defaultdict(list)
        # The place of each passage's message, and the passage's number there.
        self._places: list[int] = []
        self._numbers: list[int] = []
        # The passages that lend each passage their words, and the one that it answers.
        self._near: list[list[int]] = []
        self._answered: dict[int, int] = {}
        self._sizes: list[int] = []
        # The passages that have a term in their text, and those with it in their dates.
        self._text: Postings = defaultdict(dict)
        self._dates: Postings = defaultdict(dict)
        self._add_passages()
        self._join_neighbours()

    def _add_passages(self) -> None:
        places, numbers, sizes = self._places, self._numbers, self._sizes
        text, passage = self._text, 0
        for place, document in enumerate(self.documents):
            first = passage
            for number, (counts, total) in enumerate(document.passages):
                places.append(place)
                numbers.append(number)
                sizes.append(total)
                for term in counts:
                    text[term][passage] = counts[term]
                passage += 1
            self._said[document.speaker].append(sum(sizes[first:]))
            for term, count in document.dates.counts.items():
                self._dates[term].update(dict.fromkeys(range(first, passage), count))

    def _join_neighbours(self) -> None:
        told = [self.documents[place] for place in self._places]
        seqs, sizes, near = [each.seq for each in told], self._sizes, self._near
        for passage, seq in enumerate(seqs):
            near.append([])
            between = 0
            for other in range(passage - 1, max(passage - REACH, 0) - 1, -1):
                # There are no neighbours across a gap in the numbers.
                if between >= NEAR or seq - seqs[other] > REACH:
                    break
                near[passage].append(other)
                near[other].append(passage)
                between += sizes[other]
        for asking in self._text.get(ASKS, ()):
            following = [other for other in near[asking] if other == asking + 1]
            for answer in following:
                if told[asking].speaker != told[answer].speaker:
                    self._answered[answer] = asking

    def find_hits(
        self,
        query: Query,
        *,
        limit: int | None = 10,
        among: Collection[int] | None = None,
    ) -> list[Hit]:
        """Return the best messages, best first; of these numbers, if there are some."""
        scores: dict[int, float] = defaultdict(float)
        fields = [*self._make_fields()]
        most = 0.0
        for term in query.terms:
            frequencies = self._find(term, fields)
            found = len({self._places[passage] for passage in frequencies})
            rarity = self._rarity(term, found)
            for passage, frequency in frequencies.items():
                scores[passage] += rarity * frequency / (K1 + frequency)
            # The score that a message with all the words approaches. A word in no
            # message counts as if it occurred once: in and beside a few messages.
            most += self._rarity(term, max(found, 2 * REACH + 1))
        for passage in self._text.get(ASKS, ()):
            scores[passage] *= ASKING_WEIGHT
        best: dict[int, tuple[float, int]] = {}
        for passage in sorted(scores):
            place, score = self._places[passage], scores[passage]
            if score > best.get(place, (0.0, 0))[0]:
                best[place] = score, passage
        weights = self.weigh_speakers(query)
        having = {p for term in query.terms for p in self._text.get(term, ())}
        found = []
        for place, (score, passage) in best.items():
            said = self.documents[place]
            if among is None or said.seq in among:
                weight = weights[said.speaker] if passage in having else 1
                number = self._numbers[passage]
                found.append((-score * weight, -said.seq, score / most, number))
        # Tuples are compared faster than hits.
        return [
            Hit(-seq, -score, fit, number)
            for score, seq, fit, number in sorted(found)[:limit]
        ]

    def _make_fields(self) -> Iterator[tuple[float, list[float]]]:
        """Yield the weight of each field's terms, and the norm of each passage in it.

        The fields are the passage, its neighbours, the question before it, its dates.
        """
        sizes = self._sizes
        yield TEXT_WEIGHT, _find_norms(sizes)
        near = [sum([sizes[other] for other in others]) for others in self._near]
        yield NEIGHBOUR_WEIGHT * self._relate_neighbours(), _find_norms(near)
        asked = [0] * len(sizes)
        for passage, other in self._answered.items():
            asked[passage] = sizes[other]
        yield ANSWER_WEIGHT, _find_norms(asked)
        dated = [self.documents[place].dates.total for place in self._places]
        yield DATE_WEIGHT, _find_norms(dated)

    def _relate_neighbours(self) -> float:
        """Return how much neighbours have to do with each other, from 0 to 1."""
        if len(self._said) < 2:
            return 1.0
        messages = {self._places[passage] for passage in self._text.get(ASKS, ())}
        # One more of each: few messages say little about a conversation.
        return min(1.0, (1 + len(messages)) / (1 + ASKING_SHARE * len(self.documents)))

    def weigh_speakers(self, query: Query) -> dict[str, float]:
        """Return the weight of each speaker's messages.

        It is larger, the shorter they are compared with those of the one who says most.
        """
        means = {name: sum(each) / len(each) for name, each in self._said.items()}
        longest = max(means.values(), default=1.0)
        power = BREVITY_POWER + OWN_POWER * query.is_own
        return {
            name: min(longest / max(mean, 1.0), MOST_BREVITY) ** power
            * (UNSAID_WEIGHT if query.is_said and name != "user" else 1)
            for name, mean in means.items()
        }

    def _find(
        self, term: str, fields: Iterable[tuple[float, list[float]]]
    ) -> dict[int, float]:
        """Return the frequency of a term in each passage, over all weighted fields."""
        text, around = self._text.get(term, {}), defaultdict[int, int](int)
        for passage, count in text.items():
            for other in self._near[passage]:
                around[other] += count
        answered = self._answered.items()
        asked = {one: text[other] for one, other in answered if other in text}
        frequencies: dict[int, float] = defaultdict(float)
        counted = (text, around, asked, self._dates.get(term, {}))
        for (weight, norms), counts in zip(fields, counted, strict=True):
            for passage, count in counts.items():
                frequencies[passage] += weight * count / norms[passage]
        return frequencies

    def _rarity(self, term: str, found: int) -> float:
        having = max(self.corpus.having.get(term, 0), found)
        size = max(self.corpus.size, len(self.documents))
        return log(1 + (size - min(having, size) + 0.5) / (having + 0.5))


def _find_norms(lengths: Sequence[int]) -> list[float]:
    mean = sum(lengths) / max(len(lengths), 1) or 1.0
    return [1 - B + B * length / mean for length in lengths]


def find_norm(length: float, mean: float) -> float:
    """Return the divisor of a count in a text of this length."""
    return 1 - B + B * length / mean
