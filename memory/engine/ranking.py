"""Search over messages: BM25F in plain Python, for English, Chinese and the like.

A message is found by its own words, by those of its neighbours (an answer rarely
repeats its question) and by its date. Any word of the query may match.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import log

K1 = 1.2
# Share of the length normalisation, in every field.
B = 0.6
TEXT_WEIGHT, NEIGHBOUR_WEIGHT, DATE_WEIGHT = 1.0, 0.5, 0.5
REACH = 2
SPEAKER_BOOST = 1.3

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
    """One message of the archive; `speaker` is a name or a role."""

    seq: int
    speaker: str
    text: str
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    seq: int
    score: float


def rank(query: str, documents: Sequence[Document], *, limit: int = 10) -> list[Hit]:
    """The documents that match best, best first; none if no word matches."""
    return Index(documents).search(query, limit=limit)


class Index:
    """Documents in the order they were said, prepared for many queries."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self.documents = documents
        self.speakers = {d.speaker.casefold() for d in documents}
        self.postings: dict[str, dict[int, float]] = defaultdict(dict)
        own = [Counter(terms(document.text)) for document in documents]
        dates = [Counter(_date_terms(document.created_at)) for document in documents]
        self._add(own, TEXT_WEIGHT)
        self._add([_around(own, i) for i in range(len(own))], NEIGHBOUR_WEIGHT)
        self._add(dates, DATE_WEIGHT)

    def search(self, query: str, *, limit: int = 10) -> list[Hit]:
        words = set(terms(query))
        named = {name for name in self.speakers if words & set(terms(name))}
        scores: dict[int, float] = defaultdict(float)
        for term in sorted(words - {t for name in named for t in terms(name)}):
            for place, gain in self._gains(term):
                scores[place] += gain
        hits = [
            Hit(document.seq, score * self._boost(document, named))
            for place, score in scores.items()
            if (document := self.documents[place])
        ]
        return sorted(hits, key=lambda hit: (-hit.score, -hit.seq))[:limit]

    def _add(self, field: Sequence[Counter[str]], weight: float) -> None:
        mean_length = sum(map(Counter.total, field)) / max(len(field), 1) or 1.0
        for place, counts in enumerate(field):
            norm = 1 - B + B * counts.total() / mean_length
            for term, count in counts.items():
                posting = self.postings[term]
                posting[place] = posting.get(place, 0.0) + weight * count / norm

    def _gains(self, term: str) -> Iterator[tuple[int, float]]:
        posting = self.postings.get(term, {})
        rarity = log(
            1 + (len(self.documents) - len(posting) + 0.5) / (len(posting) + 0.5)
        )
        for place, frequency in posting.items():
            yield place, rarity * frequency / (K1 + frequency)

    def _boost(self, document: Document, named: set[str]) -> float:
        return SPEAKER_BOOST if document.speaker.casefold() in named else 1.0


def terms(text: str) -> list[str]:
    """Stemmed words without stop words; of Chinese the pairs of characters."""
    text = text.casefold()
    words = (stem(word) for word in WORD.findall(CHINESE.sub(" ", text)))
    pairs = (pair for run in CHINESE.findall(text) for pair in _pairs(run))
    return [term for term in (*words, *pairs) if term not in STOP_WORDS]


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


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


def _around(field: Sequence[Counter[str]], place: int) -> Counter[str]:
    around: Counter[str] = Counter()
    for other in range(max(place - REACH, 0), min(place + REACH + 1, len(field))):
        if other != place:
            around.update(field[other])
    return around


def _date_terms(date: datetime | None) -> list[str]:
    return terms(f"{date:%d %B %Y %A}") if date else []
