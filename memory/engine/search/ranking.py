"""Search over messages: BM25F in plain Python, for English, Chinese and the like.

A message is found by its own words, by those of its neighbours (an answer rarely
repeats its question) and by its date. Any word of the query may match.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from math import log
from typing import Self

from .terms import date_terms, terms

K1 = 1.2
# Share of the length normalisation, in every field.
B = 0.6
TEXT_WEIGHT, NEIGHBOUR_WEIGHT, DATE_WEIGHT = 1.0, 0.5, 0.5
REACH = 2
SPEAKER_BOOST = 1.3


@dataclass(frozen=True, slots=True)
class Document:
    """One message of the archive; `speaker` is a name or a role. The terms may be
    written in any code, such as hashes."""

    seq: int
    speaker: str
    terms: Counter[str]
    dates: Counter[str]

    @classmethod
    def read(
        cls, seq: int, speaker: str, text: str, created_at: datetime | None = None
    ) -> Self:
        dates = Counter(date_terms(created_at))
        return cls(seq, speaker, Counter(terms(text)), dates)


@dataclass(frozen=True, slots=True)
class Corpus:
    """What is known of a whole archive of which only some documents are ranked.

    `having` says for a term in how many documents it is.
    """

    size: int
    having: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Query:
    """The telling words of a question, and the speakers who were named in it."""

    terms: frozenset[str]
    speakers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Hit:
    """`fit`: the score as a share of what having every word of the query could give."""

    seq: int
    score: float
    fit: float


def read_query(text: str, speakers: Collection[str]) -> Query:
    words = set(terms(text))
    names = {name.casefold(): set(terms(name)) for name in speakers}
    named = {name for name, parts in names.items() if words & parts}
    told = words.difference(*(names[name] for name in named))
    return Query(frozenset(told), frozenset(named))


class Index:
    """Documents in the order they were said, prepared for many queries.

    `extend` adds later ones; what is found then is what an index of all of them finds.
    With a `corpus` they are a part of it, and their words as rare as they are there.
    """

    def __init__(
        self, documents: Iterable[Document], corpus: Corpus | None = None
    ) -> None:
        self.corpus = corpus or Corpus(0)
        self.documents: list[Document] = []
        self.speakers: set[str] = set()
        self._text = _Field(TEXT_WEIGHT)
        self._around = _Field(NEIGHBOUR_WEIGHT)
        self._dates = _Field(DATE_WEIGHT)
        self.extend(documents)

    def extend(self, documents: Iterable[Document]) -> None:
        for place, document in enumerate(documents, start=len(self.documents)):
            near = range(max(place - REACH, 0), place)
            self.documents.append(document)
            self.speakers.add(document.speaker.casefold())
            self._text.add(place, document.terms)
            self._dates.add(place, document.dates)
            for other in near:
                neighbour = self.documents[other]
                # Across a gap in the numbers there are none.
                if abs(document.seq - neighbour.seq) <= REACH:
                    self._around.add(place, neighbour.terms)
                    self._around.add(other, document.terms)

    def search(self, query: str, *, limit: int = 10) -> list[Hit]:
        """The documents that match best, best first; none if no word matches."""
        return self.match(read_query(query, self.speakers), limit=limit)

    def match(self, query: Query, *, limit: int | None = 10) -> list[Hit]:
        scores: dict[int, float] = defaultdict(float)
        best = 0.0
        for term in sorted(query.terms):
            frequencies = self._find(term)
            rarity = self._rarity(term, len(frequencies))
            for place, frequency in frequencies.items():
                scores[place] += rarity * frequency / (K1 + frequency)
            # What a message with all the words would come close to. A word that is in
            # no message counts like one said once: in and beside a few messages.
            best += self._rarity(term, max(len(frequencies), 2 * REACH + 1))
        hits = []
        for place, score in scores.items():
            document = self.documents[place]
            if document.speaker.casefold() in query.speakers:
                score *= SPEAKER_BOOST
            hits.append(Hit(document.seq, score, score / best))
        return sorted(hits, key=lambda hit: (-hit.score, -hit.seq))[:limit]

    def _find(self, term: str) -> dict[int, float]:
        """How much of a term each document has, in all its fields."""
        frequencies: dict[int, float] = {}
        for each in (self._text, self._around, self._dates):
            for place, frequency in each.find(term, len(self.documents)):
                frequencies[place] = frequencies.get(place, 0.0) + frequency
        return frequencies

    def _rarity(self, term: str, found: int) -> float:
        having = max(self.corpus.having.get(term, 0), found)
        size = max(self.corpus.size, len(self.documents))
        return log(1 + (size - min(having, size) + 0.5) / (having + 0.5))


class _Field:
    """The terms of one field of all documents, as they are counted. Lengths are only
    compared in a search, so that a later document does not change what is stored."""

    def __init__(self, weight: float) -> None:
        self.weight = weight
        self.postings: dict[str, dict[int, int]] = defaultdict(dict)
        self.lengths: dict[int, int] = defaultdict(int)
        self.total = 0

    def add(self, place: int, counts: Counter[str]) -> None:
        for term, count in counts.items():
            posting = self.postings[term]
            posting[place] = posting.get(place, 0) + count
        length = counts.total()
        self.lengths[place] += length
        self.total += length

    def find(self, term: str, documents: int) -> Iterator[tuple[int, float]]:
        """The places of a term in this field of so many documents, with its weight."""
        mean_length = self.total / max(documents, 1) or 1.0
        for place, count in self.postings.get(term, {}).items():
            norm = 1 - B + B * self.lengths[place] / mean_length
            yield place, self.weight * count / norm
