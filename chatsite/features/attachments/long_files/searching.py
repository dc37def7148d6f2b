"""The search in long files, by the index and the ranker of recall.

Each passage is ranked as a message is.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from uuid import UUID

from django.db import connection
from django.db.models import Count

from memory.engine.search import archive
from memory.engine.search.file_passages import Passage
from memory.engine.search.ranking import Document, TermCounts
from memory.files.passage_source import PassageSource, Ref
from memory.models import Conversation, Message
from memory.search import recall

from ..models import FilePassage, LongFile, LongFileUse
from . import store

# Files that are searched with a message, the newest first.
MOST_SEARCHED = 10
# Messages that have them, copies in other words among these.
MOST_USES = 100
# All passages of a file are the "side" that speaks there.
SPEAKER = "file"
NO_DATES = TermCounts({}, 0)

LOOK_UP = {
    "sqlite": """
        SELECT * FROM (
            SELECT %s, passage.number, 1 FROM attachments_passage_fts AS fts
            JOIN attachments_filepassage AS passage ON passage.id = fts.rowid
            WHERE attachments_passage_fts MATCH %s ORDER BY fts.rowid DESC LIMIT %s
        )""",
    # The terms of each file are different, so no other file is read.
    "postgresql": """
        SELECT * FROM (
            SELECT %s, number, 1 FROM attachments_filepassage
            WHERE to_tsvector('simple', terms) @@ replace(%s, ' ', ' & ')::tsquery
            ORDER BY number DESC LIMIT %s
        ) AS found""",
}

# A file, the message and the place that it has, and its name there.
Searched = tuple[UUID, int, int, str]


class KeptPassages(PassageSource):
    """The passages that are kept by this app."""

    def find_in_files(
        self,
        conversation: Conversation,
        newest: Message,
        question: str,
        *,
        limit: int,
        at: datetime | None,
    ) -> Sequence[Passage]:
        files = _list_searched(conversation, newest)
        rows = LongFile.objects.filter(pk__in=[key for key, *_ in files])
        counted = rows.annotate(count=Count("passages")).values_list("pk", "count")
        counts = dict(counted)
        return [
            passage
            for file in files
            if (count := counts.get(file[0]))
            for passage in _search_file(file, count, question, limit, at)
        ]

    def read_from_files(
        self, conversation: Conversation, refs: Iterable[Ref]
    ) -> Sequence[Passage]:
        wanted = [tuple(ref) for ref in refs]
        uses = conversation.long_file_uses.filter(
            message__seq__in={seq for seq, *_ in wanted}
        )
        named = store.name_files(store.with_places(uses))
        files = {
            (seq, place): (file.pk, seq, place, name)
            for file, seq, place, name in named
        }
        return [
            passage
            for seq, place, start, end in wanted
            if (file := files.get((seq, place)))
            and (passage := _read_span(file, start, end))
        ]


def _read_span(file: Searched, start: int, end: int) -> Passage | None:
    """Return the passages between two positions, None if none begin and end there."""
    key, seq, place, name = file
    rows = FilePassage.objects.filter(file=key, start__gte=start, end__lte=end)
    parts = list(rows.order_by("number").values_list("text", "page"))
    if not parts:
        return None
    text = "".join(text for text, _page in parts)
    return Passage(seq, place, name, start, end, text, parts[0][1])


def _list_searched(conversation: Conversation, newest: Message) -> list[Searched]:
    """Return the newest long files in the model's view.

    Those of the newest message, which may not be stored, are among them.
    """
    found = [*_list_unstored(conversation, newest)] if newest.pk is None else []
    uses = LongFileUse.objects.filter(
        conversation=conversation,
        file__is_whole=True,
        message__seq__lte=newest.seq,
        message__excluded_at=None,
        message__superseded_at=None,
        message__deleted_at=None,
    )
    rows = store.with_places(uses).order_by("-message__seq", "pk")[:MOST_USES]
    # A message that is said again in other words has the same files.
    for file, seq, place, name in store.name_files(rows):
        if file.pk not in {key for key, *_ in found}:
            found.append((file.pk, seq, place, name))
        if len(found) >= MOST_SEARCHED:
            break
    return found[:MOST_SEARCHED]


def _list_unstored(conversation: Conversation, newest: Message) -> Iterator[Searched]:
    kept = store.match_files(conversation.owner_id, newest.attachments)
    for place, (said, key) in enumerate(zip(newest.attachments, kept, strict=True)):
        if key:
            yield key, newest.seq, place, said["name"]


def _search_file(
    file: Searched, count: int, question: str, limit: int, at: datetime | None
) -> Iterator[Passage]:
    key, seq, place, name = file
    hits = archive.search_archive(
        FilePassages(key), question, before=count + 1, limit=limit, at=at
    )
    fits = {hit.seq: hit.fit for hit in hits}
    rows = FilePassage.objects.filter(file=key, number__in=fits)
    columns = ("number", "start", "end", "text", "page")
    for number, *values in rows.values_list(*columns):
        yield Passage(seq, place, name, *values, fits[number])


class FilePassages:
    """The database's index of a long file, as an archive.Source."""

    def __init__(self, key: UUID) -> None:
        self.key = key

    def _code_terms(self, wanted: Iterable[str]) -> list[str]:
        return [" ".join(recall.make_keys(self.key, each.split())) for each in wanted]

    def look_up(self, wanted: Sequence[str], before: int) -> dict[str, archive.Found]:
        coded = self._code_terms(wanted)
        statement = " UNION ALL ".join([LOOK_UP[connection.vendor]] * len(coded))
        values = [v for keys in coded for v in (keys, keys, archive.MAX_FOUND)]
        found = recall.read_lists(coded, statement, values)
        return {terms: found[keys] for terms, keys in zip(wanted, coded, strict=True)}

    def read_documents(
        self, seqs: list[int], terms: Sequence[str], known: dict[str, archive.Found]
    ) -> Iterator[Document]:
        rows = FilePassage.objects.filter(file=self.key, number__in=seqs)
        keys = dict(zip(self._code_terms(terms), terms, strict=True))
        for number, coded in rows.order_by("number").values_list("number", "terms"):
            counted = recall.count_terms(coded, keys)
            yield Document(number, SPEAKER, (counted,), NO_DATES)
