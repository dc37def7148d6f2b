"""Search over messages: BM25F in plain Python, for English, Chinese and the like.

A message is as good as its best passage. A passage is found by its own words, by those
of its neighbours (an answer rarely repeats its question) and by the date of its
message. Any word of the query may match.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from math import log
from typing import Self

from . import passages
from .terms import WORD, date_terms, terms

K1 = 1.2
# Share of the length normalisation, in every field.
B = 0.6
TEXT_WEIGHT, NEIGHBOUR_WEIGHT, DATE_WEIGHT = 1.0, 0.5, 0.5
# A passage has so many neighbours on each side, and none behind others that together
# have so many terms: those of two short messages, or of one passage of a long one.
REACH, NEAR = 2, 20
SPEAKER_BOOST = 1.3
# A side that says a fifth as much as the other says what there is to remember; the
# other elaborates. Its messages count more, by this power of the ratio of the means.
BREVITY_POWER = 0.05
# And by this one where the question is of the person who asks: "my", "I".
OWN_POWER = 0.3
MOST_BREVITY = 20
OWN_WORDS = frozenset(
    ["i", "my", "me", "mine", "we", "our", "ours", "us", "我", "我们", "咱"]
)


@dataclass(frozen=True, slots=True)
class Document:
    """One message of the archive; `speaker` is a name or a role. The terms of its
    passages, of which there is at least one, may be written in any code, as hashes."""

    seq: int
    speaker: str
    passages: tuple[Counter[str], ...]
    dates: Counter[str]

    @classmethod
    def read(
        cls, seq: int, speaker: str, text: str, created_at: datetime | None = None
    ) -> Self:
        words = (terms(text[start:end]) for start, end in passages.split(text))
        dates = Counter(date_terms(created_at))
        return cls(seq, speaker, tuple(map(Counter, words)), dates)


@dataclass(frozen=True, slots=True)
class Corpus:
    """What is known of a whole archive of which only some documents are ranked.

    `having` says for a term in how many documents it is.
    """

    size: int
    having: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Query:
    """The telling words of a question, and the speakers who were named in it; `is_own`:
    it is about the person who asks."""

    terms: frozenset[str]
    speakers: frozenset[str] = frozenset()
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """`fit`: the score, before it is weighed by who spoke, as a share of what having
    every word of the query could give. `passage`: which of the message is the best."""

    seq: int
    score: float
    fit: float
    passage: int = 0


def read_query(text: str, speakers: Collection[str]) -> Query:
    words = set(terms(text))
    names = {name.casefold(): set(terms(name)) for name in speakers}
    named = {name for name, parts in names.items() if words & parts}
    told = words.difference(*(names[name] for name in named))
    is_own = not OWN_WORDS.isdisjoint(WORD.findall(text.casefold())) or "我" in text
    return Query(frozenset(told), frozenset(named), is_own)


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
        self.speakers: dict[str, _Speaker] = defaultdict(_Speaker)
        # Of each passage, its message and which of the message's it is.
        self._passages: list[tuple[int, int]] = []
        self._text = _Field(TEXT_WEIGHT)
        self._around = _Field(NEIGHBOUR_WEIGHT)
        self._dates = _Field(DATE_WEIGHT)
        self.extend(documents)

    def extend(self, documents: Iterable[Document]) -> None:
        for place, document in enumerate(documents, start=len(self.documents)):
            self.documents.append(document)
            self.speakers[document.speaker.casefold()].add(document)
            for number, words in enumerate(document.passages):
                self._add(place, number, words)

    def _add(self, place: int, number: int, words: Counter[str]) -> None:
        passage, document = len(self._passages), self.documents[place]
        self._passages.append((place, number))
        self._text.add(passage, words)
        self._dates.add(passage, document.dates)
        between = 0
        for other in range(passage - 1, max(passage - REACH, 0) - 1, -1):
            its_place, its_number = self._passages[other]
            neighbour = self.documents[its_place]
            # Across a gap in the numbers there are none.
            if between >= NEAR or document.seq - neighbour.seq > REACH:
                break
            self._around.add(passage, neighbour.passages[its_number])
            self._around.add(other, words)
            between += neighbour.passages[its_number].total()

    def search(self, query: str, *, limit: int = 10) -> list[Hit]:
        """The documents that match best, best first; none if no word matches."""
        return self.match(read_query(query, self.speakers), limit=limit)

    def match(self, query: Query, *, limit: int | None = 10) -> list[Hit]:
        scores: dict[int, float] = defaultdict(float)
        most = 0.0
        for term in sorted(query.terms):
            frequencies = self._find(term)
            found = len({self._passages[passage][0] for passage in frequencies})
            rarity = self._rarity(term, found)
            for passage, frequency in frequencies.items():
                scores[passage] += rarity * frequency / (K1 + frequency)
            # What a message with all the words would come close to. A word that is in
            # no message counts like one said once: in and beside a few messages.
            most += self._rarity(term, max(found, 2 * REACH + 1))
        best: dict[int, tuple[float, int]] = {}
        for passage, score in scores.items():
            place, number = self._passages[passage]
            if score > best.get(place, (0.0, 0))[0]:
                best[place] = score, number
        weights = self.weigh_speakers(query)
        hits = []
        for place, (score, number) in best.items():
            document = self.documents[place]
            speaker = document.speaker.casefold()
            if speaker in query.speakers:
                score *= SPEAKER_BOOST
            weighed = score * weights[speaker]
            hits.append(Hit(document.seq, weighed, score / most, number))
        return sorted(hits, key=lambda hit: (-hit.score, -hit.seq))[:limit]

    def weigh_speakers(self, query: Query) -> dict[str, float]:
        """How much a speaker's messages count: more, the shorter they are beside those
        of the one who says most."""
        longest = max((each.mean for each in self.speakers.values()), default=1.0)
        power = BREVITY_POWER + OWN_POWER * query.is_own
        return {
            name: min(longest / max(each.mean, 1.0), MOST_BREVITY) ** power
            for name, each in self.speakers.items()
        }

    def _find(self, term: str) -> dict[int, float]:
        """How much of a term each passage has, in all its fields."""
        frequencies: dict[int, float] = {}
        for each in (self._text, self._around, self._dates):
            for passage, frequency in each.find(term, len(self._passages)):
                frequencies[passage] = frequencies.get(passage, 0.0) + frequency
        return frequencies

    def _rarity(self, term: str, found: int) -> float:
        having = max(self.corpus.having.get(term, 0), found)
        size = max(self.corpus.size, len(self.documents))
        return log(1 + (size - min(having, size) + 0.5) / (having + 0.5))


class _Speaker:
    """How many words the messages of a speaker have."""

    def __init__(self) -> None:
        self.messages = self.words = 0

    def add(self, document: Document) -> None:
        self.messages += 1
        self.words += sum(words.total() for words in document.passages)

    @property
    def mean(self) -> float:
        return self.words / self.messages


class _Field:
    """The terms of one field of all passages, as they are counted. Lengths are only
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

    def find(self, term: str, passages: int) -> Iterator[tuple[int, float]]:
        """The places of a term in this field of so many passages, with its weight."""
        mean_length = self.total / max(passages, 1) or 1.0
        for place, count in self.postings.get(term, {}).items():
            norm = find_norm(self.lengths[place], mean_length)
            yield place, self.weight * count / norm


def find_norm(length: float, mean: float) -> float:
    """By what a count in a text of this length is divided."""
    return 1 - B + B * length / mean
