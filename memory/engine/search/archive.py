"""The search in the messages of one conversation, wherever their index lies: candidates
that the index gives, put in order by the ranker.

A database's index and the one in memory are asked the same few questions, so the same
messages are found by both, in the same order. A search costs its candidates: every list
read from an index has an end, however long the conversation is.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from heapq import nlargest
from itertools import combinations, islice
from math import log
from statistics import fmean
from typing import Protocol

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

# Terms of a question that are looked up; of more the longest, as they are the rarest.
MAX_TERMS = 24
# Messages read from the index for one term. A term with more is common and tells little
# alone: a message has to have two of the rarest few.
MAX_FOUND = 100
MAX_COMMON = 3
# What is read of the candidates, in passages: messages of one each, or fewer long ones.
MAX_PASSAGES = 96
# What a word beside a message counts when candidates are chosen.
BESIDE_WEIGHT = 0.5

# The numbers of messages, and how many passages each has.
Found = dict[int, int]


class Source(Protocol):
    """An index of the messages of one conversation."""

    def look_up(self, wanted: Sequence[str], before: int) -> dict[str, Found]:
        """The newest messages before a number that have a term, or all of several terms
        with spaces between: up to MAX_FOUND."""

    def read_documents(
        self, seqs: Iterable[int], terms: Sequence[str]
    ) -> Iterable[Document]:
        """These messages in their order, with the counts of the terms."""


def search_archive(
    source: Source, query: str, *, before: int, limit: int, at: datetime | None
) -> list[Hit]:
    """The messages before a number that match best, best first. `at`: when this is
    asked, from which "yesterday" counts."""
    asked = read_query(query, at)
    terms = sorted(asked.terms, key=lambda term: (-len(term), term))[:MAX_TERMS]
    selection = _Selection(source, before)
    candidates = selection.find(terms)
    # Of the neighbours those with one of the words: the others lend none.
    beside = _add_neighbours(candidates, before).intersection(selection.passages)
    documents = source.read_documents(sorted(beside | candidates), [*terms, ASKS])
    ranked = Index(documents, Corpus(before - 1, selection.having)).find_hits(
        replace(asked, terms=tuple(terms)), limit=None
    )
    return [*islice((hit for hit in ranked if hit.seq in candidates), limit)]


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
        limit: int = 10,
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
        """The messages with all of the terms, newest first."""
        first, *others = sorted((self._postings.get(t, []) for t in terms), key=len)
        having = [*map(set, others)]
        for seq in reversed(first[: bisect_left(first, before)]):
            if all(seq in each for each in having):
                yield seq

    def read_documents(
        self, seqs: Iterable[int], terms: Sequence[str]
    ) -> Iterable[Document]:
        known = (self.documents.get(seq) for seq in seqs)
        return (document.narrow_to(terms) for document in known if document)


class _Selection:
    """What an index says about some terms in the messages before a number."""

    def __init__(self, source: Source, before: int) -> None:
        self.source, self.before = source, before
        # Of each term or pair that tells something, the messages that have it.
        self.postings: dict[str, set[int]] = defaultdict(set)
        self.passages: Found = {}
        # In how many messages, or beside how many, a term is; estimated if common.
        self.having: dict[str, float] = {}

    def find(self, terms: Sequence[str]) -> set[int]:
        """The numbers of the messages worth a closer look."""
        found = self._look_up(terms)
        common = {term for term, seqs in found.items() if len(seqs) == MAX_FOUND}
        for term, seqs in found.items():
            self.having[term] = self._estimate(seqs, term in common)
            if term not in common:
                self.postings[term] |= seqs.keys()
        # What two of the first, common terms share. It is looked up even where all are
        # rare, so that a long archive needs no more statements than a short one.
        first = sorted(terms, key=lambda t: (t not in common, self.having[t]))
        pairs = [f"{a} {b}" for a, b in combinations(first[:MAX_COMMON], 2)]
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

    def _estimate(self, seqs: Collection[int], is_common: bool) -> float:
        if not is_common:
            return len(_add_neighbours(seqs, self.before))
        share = len(seqs) / (max(seqs) - min(seqs) + 1)
        return (1 - (1 - share) ** (2 * REACH + 1)) * self.before

    def _choose(self) -> set[int]:
        """The best, up to so many passages, by what is known without reading them: that
        a word is somewhere in a message says the less, the longer the message is."""
        chosen: set[int] = set()
        room = MAX_PASSAGES
        scores = self._score()
        best = nlargest(room, scores, key=lambda seq: (scores[seq], seq))
        for seq in best:
            chosen.add(seq)
            room -= self.passages.get(seq, 1)
            if room <= 0:
                break
        return chosen

    def _score(self) -> Mapping[int, float]:
        scores: dict[int, float] = defaultdict(float)
        mean = fmean(self.passages.values()) if self.passages else 1.0
        for term, seqs in self.postings.items():
            rarity = log(1 + self.before / (self.having[term] + 0.5))
            for seq in seqs:
                norm = find_norm(self.passages[seq], mean)
                scores[seq] += rarity * (1 + K1) / (1 + K1 * norm)
            for seq in _add_neighbours(seqs, self.before).difference(seqs):
                scores[seq] += rarity * BESIDE_WEIGHT
        return scores


def _add_neighbours(seqs: Collection[int], before: int) -> set[int]:
    """The numbers and their neighbours, as far as there can be messages."""
    around = range(-REACH, REACH + 1)
    near = {seq + distance for seq in seqs for distance in around}
    return {seq for seq in near if 0 < seq < before}
