"""The long files in an export: each text once, by a message and a place that have it.

An import takes only the text that the message describes.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Annotated, Any

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _
from pydantic import BaseModel, Field

from chatsite.plugins import Seq
from memory import bundle
from memory.models import Conversation, Message
from memory.transcript import TextError, is_storable

from ..models import FilePassage, LongFile, LongFileUse
from . import store

# Of one conversation: a file with more could not be imported. The newest are in it.
MOST_OF_EXPORT = 10_000_000
MOST_PAGES = 10_000


class FileRow(BaseModel):
    """The text of a long file of message `seq`, and the start of each page."""

    seq: Seq
    place: Annotated[int, Field(ge=0, lt=20)]
    text: Annotated[str, Field(max_length=MOST_OF_EXPORT)]
    pages: Annotated[
        list[Annotated[int, Field(ge=0, le=MOST_OF_EXPORT)]],
        Field(max_length=MOST_PAGES),
    ] = []


def read_exported_long(conversation: Conversation) -> list[dict[str, Any]]:
    uses = conversation.long_file_uses.filter(file__is_whole=True)
    uses = store.with_places(uses).order_by("-message__seq", "pk")
    named = store.name_files(uses)
    size, found = 0, dict[Any, dict[str, Any]]()
    for file, seq, place, _name in named:
        if file.pk in found:
            continue
        size += file.chars
        if size > MOST_OF_EXPORT:
            break
        rows = FilePassage.objects.filter(file=file).order_by("number")
        told = list(rows.values_list("text", "start", "page"))
        found[file.pk] = {
            **{"seq": seq, "place": place, "text": "".join(t for t, *_ in told)},
            "pages": _find_pages([(start, page) for _t, start, page in told if page]),
        }
    return sorted(found.values(), key=lambda row: (row["seq"], row["place"]))


def _find_pages(passages: Sequence[tuple[int, int]]) -> list[int]:
    """Return the start of each page, derived from the pages of the passages.

    The pages of consecutive passages never fall.
    """
    pages = [page for _start, page in passages]
    most = pages[-1] if pages else 0
    return [passages[bisect_left(pages, n)][0] for n in range(1, most + 1)]


def write_exported_long(
    conversation: Conversation,
    messages: Mapping[int, Message],
    rows: Sequence[FileRow],
    batch: bundle.Batch = bundle.at_once,
) -> str:
    """Store the long files that match their messages, as far as the owner has room.

    Of the others the beginnings stay; return a sentence on these.
    """
    left = 0
    for row in rows:
        message = messages.get(row.seq)
        if message and _is_said(row, message):
            try:
                _write_file(conversation, message, row)
            except TextError:
                left += 1
    with batch(0):
        store.use_files(conversation, messages.values())
    if not left:
        return ""
    words = _(
        "Long files for which there is no room, as yours may have %(room)s million "
        "characters: %(count)s."
    )
    return words % {"room": settings.LONG_FILES_PER_PERSON_MB, "count": left}


def _is_said(row: FileRow, message: Message) -> bool:
    places = message.attachments
    said = places[row.place].get("long") if row.place < len(places) else None
    if not said or said["chars"] != len(row.text) or not is_storable(row.text):
        return False
    return said["sha256"] == sha256(row.text.encode()).hexdigest()


def _write_file(conversation: Conversation, message: Message, row: FileRow) -> None:
    """Store the file unless the owner has it already. Raises TextError without room."""
    place = message.attachments[row.place]
    if any(store.match_files(conversation.owner_id, [place])):
        return
    # Its use comes first: it is gone with the conversation, whatever happens next.
    with transaction.atomic():
        store.check_long_room(conversation.owner_id, len(row.text))
        said = {"sha256": place["long"]["sha256"], "chars": len(row.text)}
        file = LongFile.objects.create(owner_id=conversation.owner_id, **said)
        LongFileUse.objects.create(
            conversation=conversation, message=message, file=file
        )
    store.write_long(file, row.text, sorted(row.pages))
