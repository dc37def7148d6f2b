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


@dataclass(frozen=True, slots=True)
class Corpus:
    """The size of a whole archive of which only some documents are ranked.

    `having` maps a term to the number of documents that have it.
    """

    size: int
    having: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Query:
    """The terms of a question; `is_own`: it is about the user who asks."""

    terms: Collection[str]
    is_own: bool = False


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
    text, days = read_asked_days(text, at)
    return Query(frozenset([*extract_terms(text), *days]), is_own)


class Index:
    """Documents in the order of the conversation, to be ranked.

    They are a part of a corpus, which decides how rare a word is.
    """

    def __init__(self, documents: Iterable[Document], corpus: Corpus) -> None:
        self.corpus = corpus
        self.documents: list[Document] = []
        # For each speaker, the number of terms of each message.
        self._said: dict[str, list[int]] = defaultdict(list)
        # For each passage, the place of its message and its number there.
        self._passages: list[tuple[int, int]] = []
        self._text, self._around = _Field(), _Field()
        self._answered, self._dates = _Field(), _Field()
        for place, document in enumerate(documents):
            self.documents.append(document)
            terms = sum(words.total for words in document.passages)
            self._said[document.speaker].append(terms)
            for number, words in enumerate(document.passages):
                self._add(place, number, words)

    def _add(self, place: int, number: int, words: TermCounts) -> None:
        passage, document = len(self._passages), self.documents[place]
        self._passages.append((place, number))
        self._text.add(passage, words)
        self._dates.add(passage, document.dates)
        between = 0
        for other in range(passage - 1, max(passage - REACH, 0) - 1, -1):
            its_place, its_number = self._passages[other]
            neighbour = self.documents[its_place]
            # There are no neighbours across a gap in the numbers.
            if between >= NEAR or document.seq - neighbour.seq > REACH:
                break
            self._around.add(passage, neighbour.passages[its_number])
            self._around.add(other, words)
            is_answer = other == passage - 1 and document.speaker != neighbour.speaker
            if is_answer and ASKS in neighbour.passages[its_number].counts:
                self._answered.add(passage, neighbour.passages[its_number])
            between += neighbour.passages[its_number].total

    def find_hits(self, query: Query, *, limit: int | None = 10) -> list[Hit]:
        scores: dict[int, float] = defaultdict(float)
        fields = self._weigh_fields()
        most = 0.0
        for term in query.terms:
            frequencies = self._find(term, fields)
            found = len({self._passages[passage][0] for passage in frequencies})
            rarity = self._rarity(term, found)
            for passage, frequency in frequencies.items():
                scores[passage] += rarity * frequency / (K1 + frequency)
            # The score that a message with all the words approaches. A word in no
            # message counts as if it occurred once: in and beside a few messages.
            most += self._rarity(term, max(found, 2 * REACH + 1))
        best: dict[int, tuple[float, int]] = {}
        for passage, score in scores.items():
            place, _ = self._passages[passage]
            if passage in self._text.postings.get(ASKS, ()):
                score *= ASKING_WEIGHT
            if score > best.get(place, (0.0, 0))[0]:
                best[place] = score, passage
        weights = self.weigh_speakers(query)
        having = {p for term in query.terms for p in self._text.postings.get(term, ())}
        hits = []
        for place, (score, passage) in best.items():
            document = self.documents[place]
            weighed = score * (weights[document.speaker] if passage in having else 1)
            number = self._passages[passage][1]
            hits.append(Hit(document.seq, weighed, score / most, number))
        return sorted(hits, key=lambda hit: (-hit.score, -hit.seq))[:limit]

    def _weigh_fields(self) -> dict["_Field", float]:
        """Return each field with the weight of its terms in this conversation."""
        return {
            self._text: TEXT_WEIGHT,
            self._around: NEIGHBOUR_WEIGHT * self._relate_neighbours(),
            self._answered: ANSWER_WEIGHT,
            self._dates: DATE_WEIGHT,
        }

    def _relate_neighbours(self) -> float:
        """Return how much neighbours have to do with each other, from 0 to 1."""
        if len(self._said) < 2:
            return 1.0
        asking = self._text.postings.get(ASKS, ())
        messages = {self._passages[passage][0] for passage in asking}
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
            for name, mean in means.items()
        }

    def _find(self, term: str, fields: Mapping["_Field", float]) -> dict[int, float]:
        """Return the frequency of a term in each passage, over all weighted fields."""
        frequencies: dict[int, float] = {}
        for each, weight in fields.items():
            found = each.find(term, len(self._passages), weight)
            for passage, frequency in found:
                frequencies[passage] = frequencies.get(passage, 0.0) + frequency
        return frequencies

    def _rarity(self, term: str, found: int) -> float:
        having = max(self.corpus.having.get(term, 0), found)
        size = max(self.corpus.size, len(self.documents))
        return log(1 + (size - min(having, size) + 0.5) / (having + 0.5))


class _Field:
    """The counts of one field's terms in all passages.

    Lengths are only compared in a search, so a later document does not change what is
    stored.
    """

    def __init__(self) -> None:
        self.postings: dict[str, dict[int, int]] = defaultdict(dict)
        self.lengths: dict[int, int] = defaultdict(int)
        self.total = 0

    def add(self, place: int, words: TermCounts) -> None:
        for term, count in words.counts.items():
            posting = self.postings[term]
            posting[place] = posting.get(place, 0) + count
        self.lengths[place] += words.total
        self.total += words.total

    def find(
        self, term: str, passages: int, weight: float
    ) -> Iterator[tuple[int, float]]:
        """Yield the places of a term among so many passages, with its frequency."""
        mean_length = self.total / max(passages, 1) or 1.0
        for place, count in self.postings.get(term, {}).items():
            norm = find_norm(self.lengths[place], mean_length)
            yield place, weight * count / norm


def find_norm(length: float, mean: float) -> float:
    """Return the divisor of a count in a text of this length."""
    return 1 - B + B * length / mean
