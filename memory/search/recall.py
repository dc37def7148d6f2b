"""Search in the transcript of one conversation: candidates from the database's index,
put in order by the engine's ranker.

A search costs its candidates: every list read from the index has an end, however long
the transcript is.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from heapq import nlargest
from itertools import combinations, islice
from math import log
from typing import Any

from django.db import connection
from django.db.models import Max

from memory.engine.search.ranking import (
    NEIGHBOUR_WEIGHT,
    REACH,
    Corpus,
    Document,
    Hit,
    Index,
    Query,
    read_query,
)
from memory.engine.search.terms import date_terms, terms
from memory.engine.summaries.material import to_json
from memory.models import Conversation, Message, RecallEntry

# Terms of a question that are looked up; of more the longest, as they are the rarest.
MAX_TERMS = 24
# Messages read from the index for one term. A term with more is common and tells little
# alone: a message has to have two of the rarest few.
MAX_FOUND = 100
MAX_COMMON = 3
# A term in more messages than this is remembered as frequent by the process.
MIN_FREQUENT = 1000
MAX_REMEMBERED = 20_000
CANDIDATES = 16
# What PostgreSQL's tsvector holds ends at a megabyte; no typed message has so many.
MAX_INDEXED = 50_000
# Nor is more of a text read: the result of a tool can have megabytes.
MAX_CHARS = 200_000
BATCH = 500

# Both databases' parsers read plain letters in the same way.
LETTERS = str.maketrans("0123456789", "ghijklmnop")

Postings = dict[str, set[int]]

# Newest first costs nothing in SQLite; in PostgreSQL it would mean reading every match.
SQLITE = """
    SELECT * FROM (
        SELECT %s, entry.seq FROM memory_recall_fts AS fts
        JOIN memory_recallentry AS entry ON entry.message_id = fts.rowid
        WHERE memory_recall_fts MATCH %s AND entry.seq < %s
        ORDER BY fts.rowid DESC LIMIT %s
    )"""
# One statement for all keys, whose number the planner can't know: it always takes the
# index, and starts no parallel workers for so few rows.
POSTGRESQL = """
    SELECT wanted.keys, found.seq FROM unnest(%s::text[]) AS wanted (keys)
    CROSS JOIN LATERAL (
        SELECT seq FROM memory_recallentry
        WHERE to_tsvector('simple', terms || ' ' || dates)
            @@ replace(wanted.keys, ' ', ' & ')::tsquery
        AND seq < %s LIMIT %s
    ) AS found"""


def index(message: Message) -> None:
    """Make a message findable as it now is; call it where the message is written."""
    _write([message])


def index_all(*, again: bool = False) -> int:
    """Index what has no entry yet, or everything `again`; returns how many.

    Needed where messages were written past transcript.py, and again when the ranker
    reads texts in another way than before.
    """
    rows = Message.objects.order_by("pk")
    if not again:
        rows = rows.filter(recall_entry=None)
    count, messages = 0, rows.iterator(chunk_size=BATCH)
    while batch := [*islice(messages, BATCH)]:
        _write(batch)
        count += len(batch)
    return count


def _write(messages: list[Message]) -> None:
    RecallEntry.objects.bulk_create(
        [RecallEntry(**describe(message)) for message in messages],
        update_conflicts=True,
        unique_fields=["message"],
        update_fields=["terms", "dates"],
    )


def describe(message: Message) -> dict[str, Any]:
    """The entry of a message, as values; of a deleted one it holds no word."""
    conversation_id, text = message.conversation_id, words_of(message)
    dates = date_terms(message.created_at) if text else []
    return {
        "message_id": message.pk,
        "seq": message.seq,
        "terms": " ".join(_keys(conversation_id, terms(text)[:MAX_INDEXED])),
        "dates": " ".join(_keys(conversation_id, dates)),
    }


def words_of(message: Message) -> str:
    """What of a message is found: its text, the whole of a result and not only what was
    sent of it, and the names and arguments of the tools that it calls."""
    parts = [message.text[:MAX_CHARS]]
    for call in message.tool_calls:
        parts.append(f"{call['name']} {to_json(call['args'])}"[:MAX_CHARS])
    return "\n".join(parts)


def _keys(conversation_id: int, words: Iterable[str]) -> Iterator[str]:
    """Terms as they are in the index: short and of plain letters, and different in each
    conversation, so that no search reads another's lists."""
    for word in words:
        text = f"{conversation_id}:{word}".encode(errors="surrogatepass")
        yield blake2b(text, digest_size=5).hexdigest().translate(LETTERS)


def search(
    conversation: Conversation,
    query: str,
    *,
    limit: int = 10,
    before_seq: int | None = None,
    speakers: Mapping[str, str] | None = None,
) -> list[Hit]:
    """The messages before number `before_seq` that match best, best first.

    `speakers` gives the names behind the roles, if they are known.
    """
    names = speakers or {}
    asked = read_query(query, [*filter(None, names.values())])
    chosen = sorted(asked.terms, key=lambda term: (-len(term), term))[:MAX_TERMS]
    keys = [*_keys(conversation.pk, chosen)]
    before = before_seq
    if not before:
        newest = conversation.messages.aggregate(newest=Max("seq"))["newest"]
        before = (newest or 0) + 1
    archive = _Archive(before)
    candidates = archive.find(keys)
    documents = [*_read_documents(conversation, candidates, before, keys, names)]
    ranked = Index(documents, Corpus(before - 1, archive.having)).match(
        Query(frozenset(keys), asked.speakers), limit=None
    )
    return [hit for hit in ranked if hit.seq in candidates][:limit]


@dataclass(frozen=True, slots=True)
class _Frequency:
    """In or beside which share of the messages before a number a term is."""

    share: float
    before: int


# Terms that no search has to look up alone again: whatever is said later, they stay
# frequent. A search in a long archive would mostly read their lists.
FREQUENT: dict[str, _Frequency] = {}


class _Archive:
    """What the index says about some terms in the messages before a number."""

    def __init__(self, before: int) -> None:
        self.before = before
        self.postings: Postings = {}
        # In how many messages, or beside how many, a term is; estimated if common.
        self.having: dict[str, float] = {}

    def find(self, keys: list[str]) -> set[int]:
        """The numbers of the messages worth a closer look."""
        frequent = [
            key
            for key in keys
            if key in FREQUENT and FREQUENT[key].before <= self.before
        ]
        found = self._look_up([key for key in keys if key not in frequent])
        full = {key for key, seqs in found.items() if len(seqs) == MAX_FOUND}
        for key, seqs in found.items():
            self.having[key] = self._estimate(key, seqs, key in full)
        for key in frequent:
            self.having[key] = FREQUENT[key].share * self.before
        common = full.union(frequent)
        self.postings = {key: found[key] for key in keys if key not in common}
        # What two of the first, common keys share. It is looked up even where all are
        # rare, so that a long archive needs no more statements than a short one.
        first = sorted(keys, key=lambda k: (k not in common, self.having[k]))
        pairs = [f"{a} {b}" for a, b in combinations(first[:MAX_COMMON], 2)]
        for pair, seqs in self._look_up(pairs).items():
            for key in pair.split():
                self.postings.setdefault(key, set()).update(seqs)
        if not any(self.postings.values()):
            self.postings = found | self._look_up(frequent)
        return self._best()

    def _look_up(self, wanted: list[str]) -> Postings:
        """The messages that have a key, or all of several keys with spaces between."""
        found: Postings = {keys: set() for keys in wanted}
        if not wanted:
            return found
        if connection.vendor == "postgresql":
            statement, values = POSTGRESQL, [wanted, self.before, MAX_FOUND]
        else:
            statement = " UNION ALL ".join([SQLITE] * len(wanted))
            values = []
            for keys in wanted:
                values += [keys, keys, self.before, MAX_FOUND]
        with connection.cursor() as cursor:
            cursor.execute(statement, values)
            for keys, seq in cursor.fetchall():
                found[keys].add(seq)
        return found

    def _estimate(self, key: str, seqs: set[int], is_common: bool) -> float:
        if not is_common:
            return len(_spread(seqs, self.before))
        share = len(seqs) / (max(seqs) - min(seqs) + 1)
        near = 1 - (1 - share) ** (2 * REACH + 1)
        if share * self.before > MIN_FREQUENT:
            if len(FREQUENT) >= MAX_REMEMBERED:
                FREQUENT.clear()
            FREQUENT[key] = _Frequency(near, self.before)
        return near * self.before

    def _best(self) -> set[int]:
        scores: dict[int, float] = defaultdict(float)
        for key, seqs in self.postings.items():
            rarity = log(1 + self.before / (self.having[key] + 0.5))
            for seq in seqs:
                scores[seq] += rarity
            for seq in _spread(seqs, self.before) - seqs:
                scores[seq] += rarity * NEIGHBOUR_WEIGHT
        return set(nlargest(CANDIDATES, scores, key=lambda seq: (scores[seq], seq)))


def _spread(seqs: set[int], before: int) -> set[int]:
    """The numbers and their neighbours, as far as there can be messages."""
    around = range(-REACH, REACH + 1)
    near = {seq + distance for seq in seqs for distance in around}
    return {seq for seq in near if 0 < seq < before}


def _read_documents(
    conversation: Conversation,
    candidates: set[int],
    before: int,
    keys: list[str],
    names: Mapping[str, str],
) -> Iterator[Document]:
    """The candidates and their neighbours, without what was taken out of the view."""
    # As one list of numbers: given a range as well, SQLite would read all of it.
    rows = RecallEntry.objects.filter(
        message__conversation=conversation,
        message__seq__in=_spread(candidates, before),
        message__excluded_at=None,
        message__superseded_at=None,
        message__deleted_at=None,
    ).order_by("seq")
    for seq, role, *texts in rows.values_list("seq", "message__role", "terms", "dates"):
        words, dates = (_count(text, keys) for text in texts)
        yield Document(seq, names.get(role, ""), words, dates)


def _count(text: str, keys: list[str]) -> Counter[str]:
    """How often each key is there; the rest counts for the length alone."""
    # All keys are of one length and hold no space: a match is always a whole key.
    counts = Counter({key: n for key in keys if (n := text.count(key))})
    counts[""] = text.count(" ") + bool(text) - counts.total()
    return counts
