"""The rows of long files: written in pieces, deleted with the last message."""

import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet, Sum
from django.utils.translation import gettext as _

from memory import library
from memory.engine.attachments import Place
from memory.engine.search import file_passages
from memory.engine.search.terms import extract_terms
from memory.models import Conversation, Message
from memory.search import recall
from memory.transcript import TextError

from ..images.files import read_id
from ..models import FilePassage, LongFile, LongFileUse, Upload

# A text of more characters is a long file. With what is typed, and the marks, a shorter
# one is within what a message can have.
LONG_CHARS = 160_000
# Words whose keys are remembered while a file is indexed.
MOST_CODED = 50_000
# The passages that one statement of a download reads.
READ_AT_ONCE = 200


def check_long_room(owner_id: int, chars: int) -> None:
    """Raise TextError if the owner's long files have no room for so many characters."""
    limit = settings.LONG_FILES_PER_PERSON_MB * 1_000_000
    rows = LongFile.objects.filter(owner=owner_id)
    if (rows.aggregate(all=Sum("chars"))["all"] or 0) + chars > limit:
        words = _(
            "Your long files have %(limit)s million characters, which is the limit. "
            "Delete messages or conversations with such files, then attach this one "
            "again."
        )
        values = {"limit": settings.LONG_FILES_PER_PERSON_MB}
        raise TextError("too_many", words % values)


def write_long(file: LongFile, text: str, pages: Sequence[int] = ()) -> None:
    """Write the passages of a file whose row exists, in batches with pauses.

    Other users can write and work between the batches. `pages`: the start of each page.
    A file that fails or is removed meanwhile leaves no rows.
    """
    number, coded = 0, dict[str, str]()
    rows = LongFile.objects.filter(pk=file.pk)
    try:
        for start, end in file_passages.divide_file(text):
            begun = time.monotonic()
            made = [*_make_passages(file.pk, text[start:end], start, coded)]
            for passage in made:
                number += 1
                passage.number = number
                passage.page = bisect_right(pages, passage.start) or None
            with transaction.atomic():
                # One that was removed must not come back in parts.
                rows.select_for_update().get()
                FilePassage.objects.bulk_create(made)
            time.sleep(min(library.MAX_PAUSE, time.monotonic() - begun))
        rows.update(is_whole=True)
    except BaseException:
        forget_uploads([file.pk])
        raise


def _make_passages(
    key: UUID, text: str, offset: int, coded: dict[str, str]
) -> Iterator[FilePassage]:
    """`coded`: the keys of words that were made before, as most come many times."""
    if len(coded) > MOST_CODED:
        coded.clear()
    for start, end in file_passages.split_stretch(text):
        words = extract_terms(text[start:end])
        unknown = [*set(words).difference(coded)]
        coded |= zip(unknown, recall.make_keys(key, unknown), strict=True)
        yield FilePassage(
            file_id=key,
            start=offset + start,
            end=offset + end,
            text=text[start:end],
            terms=" ".join(coded[word] for word in words),
        )


def forget_uploads(ids: Iterable[UUID]) -> int:
    """Delete what is not sent, with its passages; returns how many."""
    rows = Upload.objects.filter(pk__in=[*ids])
    long = list(rows.exclude(long=None).values_list("pk", flat=True))
    count = rows.exclude(pk__in=long).delete()[0]
    # One after the other: the passages of one are as much as others should wait for.
    for key in long:
        begun = time.monotonic()
        with transaction.atomic():
            count += rows.filter(pk=key).delete()[0]
            drop_unused_files([key])
        time.sleep(min(library.MAX_PAUSE, time.monotonic() - begun))
    return count


def drop_unused_files(ids: Iterable[Any]) -> None:
    """Delete those of these files that no message and no upload has."""
    kept = Upload.objects.filter(pk__in=ids).values("pk")
    LongFile.objects.filter(pk__in=ids, uses=None).exclude(pk__in=kept).delete()


def drop_with_use(instance: LongFileUse, **_: object) -> None:
    """Delete a file whose last message is gone, whatever deleted it."""
    drop_unused_files([instance.file_id])


def match_files(owner_id: int, places: Iterable[Place]) -> Iterator[UUID | None]:
    """Yield the owner's file that each of these places of a message names.

    That is the file of its upload, else one with the same text, else None.
    """
    said = [(read_id(place["id"]), place.get("long") or {}) for place in places]
    rows = LongFile.objects.filter(
        owner=owner_id,
        is_whole=True,
        sha256__in={long["sha256"] for _key, long in said if long},
    )
    known: dict[str, dict[UUID, int]] = defaultdict(dict)
    for key, digest, chars in rows.values_list("pk", "sha256", "chars"):
        known[digest][key] = chars
    for own, long in said:
        same = known.get(long.get("sha256", ""), {})
        fitting = [key for key, chars in same.items() if chars == long["chars"]]
        yield own if own in fitting else next(iter(fitting), None)


def use_files(conversation: Conversation, messages: Iterable[Message]) -> None:
    """Link messages of the conversation to the long files that they name.

    Files that its owner does not have are skipped.
    """
    named = [
        (message, place)
        for message in messages
        for place in message.attachments
        if place.get("long")
    ]
    if not named:
        return
    kept = match_files(conversation.owner_id, [place for _message, place in named])
    LongFileUse.objects.bulk_create(
        [
            LongFileUse(conversation=conversation, message=message, file_id=key)
            for (message, _place), key in zip(named, kept, strict=True)
            if key
        ],
        ignore_conflicts=True,
    )
    count_files(conversation)


def with_places(uses: QuerySet[LongFileUse]) -> QuerySet[LongFileUse]:
    """Load what name_files() reads, without the messages' texts."""
    columns = ("file__sha256", "file__chars", "message__seq", "message__attachments")
    return uses.select_related("file", "message").only(*columns, "conversation")


def name_files(uses: Iterable[LongFileUse]) -> Iterator[tuple[LongFile, int, int, str]]:
    """Yield each file with its message number, its place and its name there."""
    for use in uses:
        for place, said in enumerate(use.message.attachments):
            if (said.get("long") or {}).get("sha256") == use.file.sha256:
                yield use.file, use.message.seq, place, said["name"]


def copy_long(
    branch: Conversation, messages: Mapping[int, Message], **_: object
) -> None:
    """Let the messages of a branch use the files of those that they are copies of."""
    use_files(branch, messages.values())


def forget_long(conversation: Conversation, seq: int, **_: object) -> None:
    """Message `seq` was deleted."""
    rows = conversation.long_file_uses.filter(message__seq=seq)
    if rows.delete()[0]:
        count_files(conversation)


def count_files(conversation: Conversation) -> None:
    count = conversation.long_file_uses.count()
    Conversation.objects.filter(pk=conversation.pk).update(long_files=count)
    conversation.long_files = count


def read_long(conversation: Conversation, seq: int, place: int) -> Iterator[str] | None:
    """Return the text of a long file of message `seq` in pieces, None if missing."""
    uses = conversation.long_file_uses.filter(message__seq=seq)
    found = name_files(with_places(uses))
    for file, _seq, its_place, _name in found:
        if its_place == place:
            return _read_long_pieces(FilePassage.objects.filter(file=file))
    return None


def _read_long_pieces(rows: QuerySet[FilePassage]) -> Iterator[str]:
    """Yield the text in pieces.

    Each piece is a query of its own, so that a slow reader holds no statement open.
    """
    last = 0
    while True:
        some = rows.filter(number__gt=last).order_by("number")[:READ_AT_ONCE]
        found = list(some.values_list("number", "text"))
        if not found:
            return
        last = found[-1][0]
        yield "".join(text for _number, text in found)
