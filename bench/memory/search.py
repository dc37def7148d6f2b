"""python -m bench.memory.search [NAME ...]: what the search finds of the messages that
answer questions, in shares of them among the ten best hits (recall@10), beside plain
BM25 over the same passages.

Sets are the files in the folder of WINDOWPANE_DATA, and those of SETS, made up here.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import log
from statistics import fmean

from memory.engine.search.archive import MessageIndex
from memory.engine.search.ranking import Document
from memory.engine.search.terms import extract_terms
from memory.evaluation.replay import RECALLED, RecordedConversation

from .conversations import load
from .days import make_days
from .fact_lists import make_list

SETS: dict[str, Callable[[], list[RecordedConversation]]] = {
    "days-seen": partial(make_days, "seen"),
    "days-unseen": partial(make_days, "unseen"),
    "facts-seen": partial(make_list, "seen"),
    "facts-unseen": partial(make_list, "unseen"),
}


def main() -> None:
    sets = load() | {name: make() for name, make in SETS.items()}
    for name in sys.argv[1:] or sets:
        shares = [share for each in sets[name] for share in score(each)]
        ours, plain = map(fmean, zip(*shares, strict=True))
        print(f"{name:20} {ours:6.1%}  BM25 {plain:6.1%}  of {len(shares)}")


def score(recording: RecordedConversation) -> Iterator[tuple[float, float]]:
    """Return for each question the share of its evidence that is found by us, and by
    BM25.
    """
    places = {each.id: n for n, each in enumerate(recording.messages, start=1)}
    documents = [
        Document.from_text(seq, each.role, each.content, each.created_at)
        for seq, each in enumerate(recording.messages, start=1)
    ]
    index = MessageIndex(documents)
    now = recording.messages[-1].created_at
    plain = Bm25(documents)
    for asked in recording.qa:
        evidence = {places[id_] for id_ in asked.evidence_ids if id_ in places}
        if evidence:
            found_by_us = index.search(asked.question, limit=RECALLED, at=now)
            hits = {hit.seq for hit in found_by_us}
            found = {*plain.search(asked.question)[:RECALLED]}
            share = len(evidence & hits) / len(evidence)
            yield share, len(evidence & found) / len(evidence)


class Bm25:
    """BM25 of the textbook, with its usual numbers."""

    K1, B = 1.2, 0.75

    def __init__(self, documents: Sequence[Document]) -> None:
        self.passages = [
            (each.seq, words) for each in documents for words in each.passages
        ]
        self.mean = fmean(words.total for _, words in self.passages) or 1.0

    def search(self, question: str) -> list[int]:
        """All messages with one of the words, by their best passages."""
        best: dict[int, float] = {}
        rarity = {}
        for term in set(extract_terms(question)):
            found = sum(term in words.counts for _, words in self.passages)
            rarity[term] = log(1 + (len(self.passages) - found + 0.5) / (found + 0.5))
        for seq, words in self.passages:
            norm = self.K1 * (1 - self.B + self.B * words.total / self.mean)
            counts = (
                (each, words.counts[each]) for each in rarity if each in words.counts
            )
            score = sum(
                rarity[each] * n * (self.K1 + 1) / (n + norm) for each, n in counts
            )
            best[seq] = max(best.get(seq, 0.0), score)
        return sorted(
            (seq for seq in best if best[seq]), key=lambda seq: (-best[seq], -seq)
        )


if __name__ == "__main__":
    main()
