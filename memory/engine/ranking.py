"""Search over messages: BM25F in plain Python, for English, Chinese and the like.

A message is found by its own words, by those of its neighbours (an answer rarely
repeats its question) and by its date. Any word of the query may match.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import log
from typing import Self

K1 = 1.2
# Share of the length normalisation, in every field.
B = 0.6
TEXT_WEIGHT, NEIGHBOUR_WEIGHT, DATE_WEIGHT = 1.0, 0.5, 0.5
REACH = 2
SPEAKER_BOOST = 1.3
# A text with fewer different words has no topic of its own: "Yes, go on."
LEAST_WORDS = 4

WORD = re.compile(r"[^\W_]+")
CHINESE = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+")
STOP_WORDS = frozenset(
    WORD.findall(
        """
        a about after all also am an and any are as at be because been before
        being but by can could did do does doing don during each for from had
        has have having he her here hers him his how i if in into is it its
        itself just ll m me might more most my no not now of off on once only or
        other our ours out over own re s same she should so some such t than
        that the their theirs them then there these they this those through to
        too under until up us ve very was we were what when where which while
        who whom whose why will with would you your yours
        的 了 是 我 你 吗 什么
        """
    )
)


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

    With a `corpus` they are a part of it, and their words as rare as they are there.
    """

    def __init__(
        self, documents: Sequence[Document], corpus: Corpus | None = None
    ) -> None:
        self.documents = documents
        self.corpus = corpus or Corpus(len(documents))
        self.speakers = {d.speaker.casefold() for d in documents}
        self.postings: dict[str, dict[int, float]] = defaultdict(dict)
        own = [document.terms for document in documents]
        self._add(own, TEXT_WEIGHT)
        around = [self._around(own, place) for place in range(len(own))]
        self._add(around, NEIGHBOUR_WEIGHT)
        self._add([document.dates for document in documents], DATE_WEIGHT)

    def search(self, query: str, *, limit: int = 10) -> list[Hit]:
        """The documents that match best, best first; none if no word matches."""
        return self.match(read_query(query, self.speakers), limit=limit)

    def match(self, query: Query, *, limit: int | None = 10) -> list[Hit]:
        scores: dict[int, float] = defaultdict(float)
        for term in sorted(query.terms):
            rarity = self._rarity(term)
            for place, frequency in self.postings.get(term, {}).items():
                scores[place] += rarity * frequency / (K1 + frequency)
        # What a message with all the words would come close to. A word that is in no
        # message counts like one said once: in and beside a few messages.
        best = sum(self._rarity(term, 2 * REACH + 1) for term in query.terms)
        hits = []
        for place, score in scores.items():
            document = self.documents[place]
            if document.speaker.casefold() in query.speakers:
                score *= SPEAKER_BOOST
            hits.append(Hit(document.seq, score, score / best))
        return sorted(hits, key=lambda hit: (-hit.score, -hit.seq))[:limit]

    def _add(self, counted: Sequence[Counter[str]], weight: float) -> None:
        mean_length = sum(map(Counter.total, counted)) / max(len(counted), 1) or 1.0
        for place, counts in enumerate(counted):
            norm = 1 - B + B * counts.total() / mean_length
            for term, count in counts.items():
                posting = self.postings[term]
                posting[place] = posting.get(place, 0.0) + weight * count / norm

    def _around(self, own: Sequence[Counter[str]], place: int) -> Counter[str]:
        """The terms of the neighbours; across a gap in the numbers there are none."""
        seq = self.documents[place].seq
        around: dict[str, int] = {}
        for other in range(max(place - REACH, 0), min(place + REACH + 1, len(own))):
            if other != place and abs(self.documents[other].seq - seq) <= REACH:
                # Half the time of Counter.update().
                for term, count in own[other].items():
                    around[term] = around.get(term, 0) + count
        return Counter(around)

    def _rarity(self, term: str, at_least: int = 0) -> float:
        known = self.corpus.having.get(term, 0)
        having = max(known, len(self.postings.get(term, ())), at_least)
        size = max(self.corpus.size, len(self.documents))
        return log(1 + (size - min(having, size) + 0.5) / (having + 0.5))


def distance(text: str, other: str) -> float | None:
    """The share of the different words of a text that another one does not have, from 0
    to 1; None if it has too few words to tell."""
    words = set(terms(text))
    if len(words) < LEAST_WORDS:
        return None
    return len(words.difference(terms(other))) / len(words)


def terms(text: str) -> list[str]:
    """Stemmed words without stop words; of Chinese the pairs of characters."""
    text = text.casefold()
    words = (stem(word) for word in WORD.findall(CHINESE.sub(" ", text)))
    pairs = (
        run[i : i + 2]
        for run in CHINESE.findall(text)
        for i in range(max(len(run) - 1, 1))
    )
    return [term for term in (*words, *pairs) if term not in STOP_WORDS]


def stem(word: str) -> str:
    """Enough for plurals and tenses: hikes, hiked and hiking become one term."""
    if len(word) <= 3 or word in STOP_WORDS:
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    for ending in ("ing", "ed", "es", "s"):
        root = word.removesuffix(ending)
        if root != word and len(root) >= 3 and not root.endswith("s"):
            word = root
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "ls":
        return word[:-1]
    return word.removesuffix("e") if len(word) > 3 else word


def date_terms(date: datetime | None) -> list[str]:
    return terms(f"{date:%d %B %Y %A}") if date else []
