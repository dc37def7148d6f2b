"""Search in the transcript of one conversation: candidates from the database's index,
put in order by the engine's ranker.

A search costs its candidates: every list read from the index has an end, however long
the transcript is.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from heapq import nlargest
from itertools import combinations, islice
from math import log
from statistics import fmean
from typing import Any

from django.db import connection
from django.db.models import Max

from memory.engine.search import passages
from memory.engine.search.ranking import (
    K1,
    NEIGHBOUR_WEIGHT,
    REACH,
    Corpus,
    Document,
    Hit,
    Index,
    find_norm,
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
# Between the passages of a message; no word to either database's parser.
BREAK = " | "

# Both databases' parsers read plain letters in the same way.
LETTERS = str.maketrans("0123456789", "ghijklmnop")

Postings = dict[str, set[int]]

# Newest first costs nothing in SQLite; in PostgreSQL it would mean reading every match.
SQLITE = """
    SELECT * FROM (
        SELECT %s, entry.seq, entry.passages FROM memory_recall_fts AS fts
        JOIN memory_recallentry AS entry ON entry.message_id = fts.rowid
        WHERE memory_recall_fts MATCH %s AND entry.seq < %s
        ORDER BY fts.rowid DESC LIMIT %s
    )"""
# One statement for all keys, whose number the planner can't know: it always takes the
# index, and starts no parallel workers for so few rows.
POSTGRESQL = """
    SELECT wanted.keys, found.seq, found.passages
    FROM unnest(%s::text[]) AS wanted (keys)
    CROSS JOIN LATERAL (
        SELECT seq, passages FROM memory_recallentry
        WHERE to_tsvector('simple', terms || ' ' || dates)
            @@ replace(wanted.keys, ' ', ' & ')::tsquery
        AND seq < %s LIMIT %s
    ) AS found"""


def index(message: Message) -> None:
    """Make a message findable as it now is; call it where the message is written."""
    _write([message])


def index_many(messages: list[Message]) -> None:
    """index() with one statement for all of them."""
    _write(messages)


def index_all(*, again: bool = False) -> int:
    """Index what has no entry yet, or one without passages, or everything `again`;
    returns how many.

    Needed where messages were written past transcript.py, or by a release that indexed
    no passages, and again when the ranker reads texts in another way than before.
    """
    rows = Message.objects.order_by("pk")
    if not again:
        rows = rows.filter(recall_entry__passages=None)
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
        update_fields=["terms", "dates", "passages"],
    )


def describe(message: Message) -> dict[str, Any]:
    """The entry of a message, as values; of a deleted one it holds no word."""
    conversation_id, text = message.conversation_id, words_of(message)
    dates = date_terms(message.created_at) if text else []
    parts, room = [], MAX_INDEXED
    coded: dict[str, str] = {}  # a long text has most of its words many times
    for start, end in passages.split(text):
        words = terms(text[start:end])[:room]
        unknown = [*set(words).difference(coded)]
        coded |= zip(unknown, _keys(conversation_id, unknown), strict=True)
        parts.append(" ".join(coded[word] for word in words))
        room -= len(words)
        if not room:
            break
    return {
        "message_id": message.pk,
        "seq": message.seq,
        "terms": BREAK.join(parts),
        "dates": " ".join(_keys(conversation_id, dates)),
        "passages": len(parts),
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
        replace(asked, terms=frozenset(keys)), limit=None
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
        # How many passages the messages that were found have.
        self.passages: dict[int, int] = {}
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
            for keys, seq, count in cursor.fetchall():
                found[keys].add(seq)
                # None: indexed before there were passages.
                self.passages[seq] = count or 1
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
        """By what is known without reading them: that a word is somewhere in a message
        says the less, the longer the message is."""
        scores: dict[int, float] = defaultdict(float)
        mean = fmean(self.passages.values()) if self.passages else 1.0
        for key, seqs in self.postings.items():
            rarity = log(1 + self.before / (self.having[key] + 0.5))
            for seq in seqs:
                norm = find_norm(self.passages[seq], mean)
                scores[seq] += rarity * (1 + K1) / (1 + K1 * norm)
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
    columns = ("seq", "message__role", "terms", "dates")
    for seq, role, words, dates in rows.values_list(*columns):
        found = _count_all(words, keys)
        yield Document(seq, names.get(role, role), found, _count(dates, keys))


def _count_all(text: str, keys: list[str]) -> tuple[Counter[str], ...]:
    """The counts of each passage."""
    present = [key for key in keys if key in text]
    return tuple(_count(part, present) for part in text.split(BREAK))


def _count(text: str, keys: list[str]) -> Counter[str]:
    """How often each key is there; the rest counts for the length alone."""
    # All keys are of one length and hold no space: a match is always a whole key.
    counts = Counter({key: n for key in keys if (n := text.count(key))})
    counts[""] = text.count(" ") + bool(text) - counts.total()
    return counts
