"""The search index of messages in the database, and search in a conversation."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from itertools import islice
from typing import Any

from django.db import connection
from django.db.models import Max
from django.utils import timezone

from memory.engine.search import archive
from memory.engine.search.ranking import (
    MAX_CHARS,
    Document,
    Hit,
    TermCounts,
    read_dates,
    read_passages,
)
from memory.engine.summaries.material import dump_json
from memory.models import Conversation, Message, RecallEntry
from memory.sql import insert_row

BATCH = 500
# The separator of a message's passages; neither database parses it as a word.
BREAK = " | "

# Both databases parse plain letters in the same way.
LETTERS = str.maketrans("0123456789", "ghijklmnop")

SQLITE = """
    SELECT * FROM (
        SELECT * FROM (
            SELECT %s, entry.seq, entry.passages FROM memory_recall_fts AS fts
            JOIN memory_recallentry AS entry ON entry.message_id = fts.rowid
            WHERE memory_recall_fts MATCH %s AND entry.seq < %s
            ORDER BY fts.rowid DESC LIMIT %s
        ) ORDER BY seq DESC LIMIT %s
    )"""
# SQLite finds the newest matches first; PostgreSQL would have to read all of them. So
# the stretches of a long conversation have their own keys: the matches in the newest
# stretch are found alone, and earlier ones only if these are too few. Entries of an
# older release that runs beside this one have no such key. All keys are in one
# statement. The planner can't know their number, so it always uses the index, and
# starts no parallel workers for so few rows.
POSTGRESQL = """
    SELECT wanted.keys, found.seq, found.passages
    FROM unnest(%s::text[]) AS wanted (keys)
    CROSS JOIN LATERAL (
        SELECT part.seq, part.passages
        FROM unnest(%s::text[], %s::int[]) AS stretch (keys, before)
        CROSS JOIN LATERAL (
            SELECT seq, passages FROM memory_recallentry
            WHERE to_tsvector('simple', terms || ' ' || dates)
                @@ (replace(wanted.keys, ' ', ' & ') || stretch.keys)::tsquery
            AND seq < %s
            AND (seq < stretch.before OR stretch.keys = '' AND strpos(dates, '|') = 0)
            ORDER BY seq DESC LIMIT %s
        ) AS part
        LIMIT %s
    ) AS found"""

# The text of the statement is constant, so that SQLite parses and plans it once; Django
# would compile it with each list of numbers.
SQLITE_READ = """
    SELECT message.seq, message.role, entry.terms, entry.dates
    FROM memory_message AS message
    JOIN memory_recallentry AS entry ON entry.message_id = message.id
    WHERE message.conversation_id = %s
    AND message.seq IN (SELECT value FROM json_each(%s))
    AND message.excluded_at IS NULL AND message.superseded_at IS NULL
    AND message.deleted_at IS NULL
    ORDER BY message.seq"""
POSTGRESQL_READ = SQLITE_READ.replace(
    "IN (SELECT value FROM json_each(%s))", "= ANY(%s)"
)

# Messages per stretch: a short one is read for a common term, a long one for a rarer
# one. Intersecting both costs as much as the shorter of the two lists.
STRETCHES = (1_024, 16_384)
# A message that was sent while a reply called tools has a higher number than the rows
# of that reply, which are written later. This is the most such rows; SQLite reads by
# age.
OUT_OF_ORDER = 64

# A cache of PostgreSQL's lists of common terms in long conversations, by state of the
# memory: until the next compaction, all replies search the same messages.
KEPT: dict[tuple[str, int, int], archive.Found] = {}
LONG, MAX_KEPT = 10_000, 2_000


def index_messages(messages: list[Message]) -> None:
    """Index messages as they now are; call it where they are written."""
    RecallEntry.objects.bulk_create(
        [RecallEntry(**describe_entry(message)) for message in messages],
        update_conflicts=True,
        unique_fields=["message"],
        update_fields=["terms", "dates", "passages"],
    )


def index_new(message: Message) -> None:
    """Index a message that was just stored, in its transaction."""
    insert_row(RecallEntry(**describe_entry(message)))


def index_all(*, again: bool = False) -> int:
    """Index messages without an entry or passages, or all `again`.

    Return how many. Needed where messages were written without transcript.py, or by a
    release that indexed no passages, and again when the ranker reads texts in another
    way than before.
    """
    rows = Message.objects.order_by("pk")
    if not again:
        rows = rows.filter(recall_entry__passages=None)
    count, messages = 0, rows.iterator(chunk_size=BATCH)
    while batch := [*islice(messages, BATCH)]:
        index_messages(batch)
        count += len(batch)
    return count


def describe_entry(message: Message) -> dict[str, Any]:
    """Return the values of a message's entry; a deleted one has no words."""
    conversation_id, text = message.conversation_id, words_of(message)
    days = make_keys(conversation_id, read_dates(text, message.created_at))
    stretches = []
    if connection.vendor == "postgresql" and text:
        stretches = list_stretches(conversation_id, message.seq)
    parts = []
    coded: dict[str, str] = {}  # a long text has most of its words many times
    for words in read_passages(text):
        unknown = [*set(words).difference(coded)]
        coded |= zip(unknown, make_keys(conversation_id, unknown), strict=True)
        parts.append(" ".join(coded[word] for word in words))
    return {
        "message_id": message.pk,
        "seq": message.seq,
        "terms": BREAK.join(parts),
        "dates": " ".join(days) + (BREAK + " ".join(stretches) if stretches else ""),
        "passages": len(parts),
    }


def list_stretches(conversation_id: int, seq: int) -> list[str]:
    """Return the keys of the stretches that a message is in.

    The first stretch has no key, so that short conversations have none.
    """
    numbers = ((size, seq // size) for size in STRETCHES)
    names = [f"#{size}:{number}" for size, number in numbers if number]
    return [*make_keys(conversation_id, names)]


def plan_stretches(conversation_id: int, before: int) -> tuple[list[str], list[int]]:
    """Return how the newest messages before a number are searched.

    These are the additions to the query, and the number before which each applies; the
    last part is all the rest.
    """
    queries, ends = [], [before]
    for size in STRETCHES:
        newest = (before - 1) // size
        if newest < 2:
            break
        # The newest stretch may have few messages, so search the one before it too.
        names = [f"#{size}:{number}" for number in (newest, newest - 1)]
        queries.append(f" & ({' | '.join(make_keys(conversation_id, names))})")
        ends.append((newest - 1) * size)
    return [*queries, ""], ends


def words_of(message: Message) -> str:
    """Return the searchable text of a message.

    It has the text, the whole of a tool result and not only the part that was sent, and
    the names and arguments of tool calls.
    """
    parts = [message.text[:MAX_CHARS]]
    for call in message.tool_calls:
        parts.append(f"{call['name']} {dump_json(call['args'])}"[:MAX_CHARS])
    return "\n".join(parts)


def make_keys(scope: object, words: Iterable[str]) -> Iterator[str]:
    """Yield the terms as they are in the index: short and of plain letters.

    They differ in each `scope`, such as a conversation, so that no search reads
    another's lists.
    """
    for word in words:
        text = f"{scope}:{word}".encode(errors="surrogatepass")
        yield blake2b(text, digest_size=5).hexdigest().translate(LETTERS)


def recall_messages(
    conversation: Conversation,
    query: str,
    *,
    limit: int | None = 10,
    before_seq: int | None = None,
    at: datetime | None = None,
) -> list[Hit]:
    """Return the best matches before number `before_seq`, best first.

    `at`: the time of the question; default: now.
    """
    before = before_seq
    if not before:
        newest = conversation.messages.aggregate(newest=Max("seq"))["newest"]
        before = (newest or 0) + 1
    entries, at = _Entries(conversation), at or timezone.now()
    return archive.search_archive(entries, query, before=before, limit=limit, at=at)


class _Entries:
    """The database's index of a conversation, as an archive.Source."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation

    def _code(self, wanted: Iterable[str]) -> list[str]:
        return [
            " ".join(make_keys(self.conversation.pk, terms.split())) for terms in wanted
        ]

    def look_up(self, wanted: Sequence[str], before: int) -> dict[str, archive.Found]:
        coded = self._code(wanted)
        most = archive.MAX_FOUND
        if connection.vendor == "postgresql":
            state = before, self.conversation.memory_version
            found = {
                each: KEPT[each, *state] for each in coded if (each, *state) in KEPT
            }
            missing = [keys for keys in coded if keys not in found]
            stretches = plan_stretches(self.conversation.pk, before)
            values = [missing, *stretches, before, most, most]
            found |= self._keep_long(read_lists(missing, POSTGRESQL, values), before)
        else:
            values = [
                value
                for keys in coded
                for value in (keys, keys, before, most + OUT_OF_ORDER, most)
            ]
            found = read_lists(coded, " UNION ALL ".join([SQLITE] * len(coded)), values)
        return {terms: found[keys] for terms, keys in zip(wanted, coded, strict=True)}

    def _keep_long(
        self, found: dict[str, archive.Found], before: int
    ) -> dict[str, archive.Found]:
        state = before, self.conversation.memory_version
        for keys, some in found.items():
            if before > LONG and len(some) == archive.MAX_FOUND:
                if len(KEPT) >= MAX_KEPT:
                    KEPT.clear()
                KEPT[keys, *state] = some
        return found

    def read_documents(
        self, seqs: list[int], terms: Sequence[str], known: dict[str, archive.Found]
    ) -> Iterator[Document]:
        """Yield the visible messages of these numbers."""
        keys = dict(zip(self._code(terms), terms, strict=True))
        statement, among = SQLITE_READ, dump_json(seqs)
        if connection.vendor == "postgresql":
            statement, among = POSTGRESQL_READ, seqs
        with connection.cursor() as cursor:
            cursor.execute(statement, [self.conversation.pk, among])
            rows = cursor.fetchall()
        # Messages of one day have most of their dates in common.
        dated: dict[str, TermCounts] = {}
        for seq, role, words, dates in rows:
            if not (days := dated.get(dates)):
                days = dated[dates] = count_terms(dates.partition(BREAK)[0], keys)
            had = keys
            if len(words) > 1_500:  # no search in all of it for terms that it lacks
                had = {k: t for k, t in keys.items() if seq in known.get(t, (seq,))}
            had = {key: term for key, term in had.items() if key in words}
            parts = [count_terms(part, had) for part in words.split(BREAK)]
            yield Document(seq, role, tuple(parts), days)


def read_lists(
    coded: Sequence[str], statement: str, values: Sequence[Any]
) -> dict[str, archive.Found]:
    found: dict[str, archive.Found] = {keys: {} for keys in coded}
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        for keys, seq, count in cursor.fetchall():
            # None: indexed by an older release, without passages.
            found[keys][seq] = count or 1
    return found


def count_terms(text: str, keys: Mapping[str, str]) -> TermCounts:
    """Count how often the term of each key occurs."""
    # All keys have ten letters and no space, so a match is always a whole key.
    counts = {term: n for key, term in keys.items() if (n := text.count(key))}
    return TermCounts(counts, (len(text) + 1) // 11)
