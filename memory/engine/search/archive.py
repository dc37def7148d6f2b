"""The search in the messages of one conversation, over an index of any kind.

The index supplies candidates, the ranker orders them. A database's index and the one in
memory answer the same few questions, so both find the same messages in the same order.
The cost of a search depends on its candidates: every list read from an index is
limited, however long the conversation is.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import combinations, islice
from math import log
from statistics import fmean
from typing import Protocol

from .breadth import find_breadth
from .ranking import (
    ASKS,
    K1,
    REACH,
    Corpus,
    Document,
    Hit,
    Index,
    find_norm,
    read_query,
)

# The number of terms that are looked up: the longest, as they are the rarest.
MAX_TERMS = 24
# Messages read from the index for one term. A term with more is common and says little
# alone: a message must have two of the MAX_COMMON rarest.
MAX_FOUND = 200
MAX_COMMON = 3
# Passages read of the candidates: messages of one each, or fewer long ones.
MAX_PASSAGES = 200
# The weight of a word in a neighbouring message when candidates are chosen.
BESIDE_WEIGHT = 0.5
# The power of a message's passages by which its score is divided where the user's own
# messages are asked for: long replies would take all the room.
SAID_POWER = 0.5

# The number of each message, and how many passages it has.
Found = dict[int, int]


class Source(Protocol):
    """An index of the messages of one conversation."""

    def look_up(self, wanted: Sequence[str], before: int) -> dict[str, Found]:
        """Return the newest messages before a number with each of the wanted terms.

        Several terms with spaces between them must all be in the message. At most
        MAX_FOUND messages each.
        """

    def read_documents(
        self, seqs: list[int], terms: Sequence[str], known: dict[str, Found]
    ) -> Iterable[Document]:
        """Return these messages in their order, with the counts of the terms.

        `known`: for each term that is rare enough, all messages that have it.
        """


def search_archive(
    source: Source, query: str, *, before: int, limit: int | None, at: datetime | None
) -> list[Hit]:
    """Return the best matching messages before a number, best first.

    `limit`: None for as many as the question is about. `at`: the time of the question,
    from which "yesterday" counts.
    """
    asked = read_query(query, at)
    terms = sorted(asked.terms, key=lambda term: (-len(term), term))[:MAX_TERMS]
    selection = _Selection(source, before, SAID_POWER * asked.is_said)
    candidates = selection.find(terms)
    # Only neighbours with one of the words: the others have none to lend.
    beside = _add_neighbours(candidates, before).intersection(selection.passages)
    seqs = sorted(beside | candidates)
    documents = source.read_documents(seqs, [*terms, ASKS], selection.known)
    ranked = Index(documents, Corpus(before - 1, selection.having))
    wanted = replace(asked, terms=tuple(terms))
    most = limit or find_breadth(query).hits
    return ranked.find_hits(wanted, limit=most, among=candidates)


class MessageIndex:
    """An index in memory.

    Documents added later are found as if the index had been built with all of them.
    """

    def __init__(self, documents: Iterable[Document] = ()) -> None:
        self.documents: dict[int, Document] = {}
        self.newest = 0
        self._postings: dict[str, list[int]] = defaultdict(list)
        self.add_documents(documents)

    def add_documents(self, documents: Iterable[Document]) -> None:
        for document in documents:
            self.documents[document.seq] = document
            self.newest = document.seq
            texts = (words.counts for words in document.passages)
            for term in set(document.dates.counts).union(*texts):
                self._postings[term].append(document.seq)

    def search(
        self,
        query: str,
        *,
        limit: int | None = 10,
        before: int | None = None,
        at: datetime | None = None,
    ) -> list[Hit]:
        before = before or self.newest + 1
        return search_archive(self, query, before=before, limit=limit, at=at)

    def look_up(self, wanted: Sequence[str], before: int) -> dict[str, Found]:
        return {
            terms: {
                seq: len(self.documents[seq].passages)
                for seq in islice(self._meet(terms.split(), before), MAX_FOUND)
            }
            for terms in wanted
        }

    def _meet(self, terms: Sequence[str], before: int) -> Iterator[int]:
        """Yield the messages with all of the terms, newest first."""
        first, *others = sorted((self._postings.get(t, []) for t in terms), key=len)
        having = [*map(set, others)]
        for seq in reversed(first[: bisect_left(first, before)]):
            if all(seq in each for each in having):
                yield seq

    def read_documents(
        self, seqs: list[int], terms: Sequence[str], known: dict[str, Found]
    ) -> Iterable[Document]:
        found = [self.documents[seq] for seq in seqs if seq in self.documents]
        return (document.narrow_to(terms) for document in found)


class _Selection:
    """The messages before a number that an index has for some terms.

    The score of a message's words is divided by a power of the number of its passages.
    """

    def __init__(self, source: Source, before: int, power: float) -> None:
        self.source, self.before, self.power = source, before, power
        # For each term or pair that is rare enough, the messages that have it.
        self.postings: dict[str, set[int]] = defaultdict(set)
        # The messages with such a term, and with those beside them.
        self.known: dict[str, Found] = {}
        self.near: dict[str, set[int]] = {}
        self.passages: Found = {}
        # The number of messages with a term in or beside them; estimated if common.
        self.having: dict[str, float] = {}

    def find(self, terms: Sequence[str]) -> set[int]:
        """Return the numbers of the messages worth a closer look."""
        found = self._look_up(terms)
        common = {term for term, seqs in found.items() if len(seqs) == MAX_FOUND}
        for term, seqs in found.items():
            if term in common:
                share = len(seqs) / (max(seqs) - min(seqs) + 1)
                self.having[term] = (1 - (1 - share) ** (2 * REACH + 1)) * self.before
                continue
            self.known[term], self.postings[term] = seqs, {*seqs}
            self.near[term] = _add_neighbours(seqs, self.before)
            self.having[term] = len(self.near[term])
        # Messages that two of the first, common terms share. Those of two rare terms
        # are known already.
        first = sorted(terms, key=lambda t: (t not in common, self.having[t]))
        rarest = combinations(first[:MAX_COMMON], 2)
        pairs = [f"{a} {b}" for a, b in rarest if a in common or b in common]
        for pair, seqs in self._look_up(pairs).items():
            for term in pair.split():
                self.postings[term] |= seqs.keys()
        if not any(self.postings.values()):
            self.postings.update((term, {*seqs}) for term, seqs in found.items())
        return self._choose()

    def _look_up(self, wanted: Sequence[str]) -> dict[str, Found]:
        found = self.source.look_up(wanted, self.before) if wanted else {}
        for seqs in found.values():
            self.passages |= seqs
        return found

    def _choose(self) -> set[int]:
        """Return the best messages, up to MAX_PASSAGES, without reading them.

        That a word is somewhere in a message counts less, the longer the message is.
        """
        chosen, room = set[int](), MAX_PASSAGES
        scores = self._score()
        least = min(sorted(scores.values(), reverse=True)[:room], default=0.0)
        best = ((score, seq) for seq, score in scores.items() if score >= least)
        for _, seq in sorted(best, reverse=True):
            chosen.add(seq)
            room -= self.passages.get(seq, 1)
            if room <= 0:
                break
        return chosen

    def _score(self) -> Mapping[int, float]:
        scores: dict[int, float] = defaultdict(float)
        mean = fmean(self.passages.values()) if self.passages else 1.0
        # By the number of passages: most messages have one.
        sizes = {*self.passages.values()}
        divisors = {n: (1 + K1 * find_norm(n, mean)) * n**self.power for n in sizes}
        for term, seqs in self.postings.items():
            rarity = log(1 + self.before / (self.having[term] + 0.5))
            full, beside = rarity * (1 + K1), rarity * BESIDE_WEIGHT
            for seq in seqs:
                scores[seq] += full / divisors[self.passages[seq]]
            near = self.near.get(term) or _add_neighbours(seqs, self.before)
            for seq in near.difference(seqs):
                scores[seq] += beside
        return scores


def _add_neighbours(seqs: Collection[int], before: int) -> set[int]:
    """Return the numbers and their neighbours, within the range of messages."""
    near = {*seqs}
    for distance in range(1, REACH + 1):
        near.update([seq - distance for seq in seqs], [seq + distance for seq in seqs])
    return near.difference(range(1 - REACH, 1), range(before, before + REACH))
