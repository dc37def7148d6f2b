"""The rows of files that are uploaded and not sent yet: a few per user, for a day."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from chatsite.database import lock_user
from memory.engine.attachments import Attachment, Image, LongText, describe_long
from memory.engine.file_names import clean_file_name, find_file_kind
from memory.engine.tokens import count_text
from memory.models import Message
from memory.transcript import TextError

from .encodings import EncodingChoice
from .errors import FileError
from .images import files
from .long_files import store
from .models import LongFile, Upload
from .reading import ReadFile

MOST_OF_MESSAGE = 10
MOST_UNSENT = 20
KEPT = timedelta(days=1)
# The rows that the background job deletes in one statement.
SWEEP_AT_ONCE = 100


def store_upload(
    owner: AbstractBaseUser, file: ReadFile, unread: Upload | None = None
) -> Upload:
    """Store the file until it is sent, in place of its unread upload if there was one.

    Raises TextError if the owner has too many.
    """
    if len(file.text) <= store.LONG_CHARS:
        return _insert_upload(owner, file, unread=unread)
    said = LongText(sha256(file.text.encode()).hexdigest(), len(file.text))
    described = file._replace(text=describe_long(file.name, file.text))
    kept = _insert_upload(owner, described, said, unread)
    store.write_long(LongFile(kept.pk), file.text, file.pages)
    return kept


@transaction.atomic
def _insert_upload(
    owner: AbstractBaseUser,
    file: ReadFile,
    long: LongText | None = None,
    unread: Upload | None = None,
) -> Upload:
    if unread:
        unread.delete()
    _check_count(owner)
    image: dict[str, Any] = {}
    if read := file.image:
        files.check_room(owner.pk, len(read.data) + len(read.small))
        image = {"image": asdict(read.image), "data": read.data, "small": read.small}
    if long:
        store.check_long_room(owner.pk, long.chars)
        image = {"long": asdict(long)}
    row = Upload.objects.create(
        owner=owner,
        name=file.name,
        kind=file.kind,
        size=file.size,
        text=file.text,
        tokens=count_text(file.text),
        **image,
    )
    if long:
        LongFile.objects.create(pk=row.pk, owner=owner, **asdict(long))
    return row


def _check_count(owner: AbstractBaseUser) -> None:
    lock_user(owner.pk)
    if Upload.objects.filter(owner=owner).count() >= MOST_UNSENT:
        words = _(
            "You have %(limit)s files that are not sent yet. Send or remove some, then "
            "attach this one again."
        )
        raise TextError("too_many", words % {"limit": MOST_UNSENT})


@transaction.atomic
def store_unread(
    owner: AbstractBaseUser, name: str, data: bytes, readings: Sequence[EncodingChoice]
) -> Upload:
    """Store the bytes of a text until its owner has chosen an encoding.

    Raises TextError if they have too many.
    """
    _check_count(owner)
    name = clean_file_name(name)
    return Upload.objects.create(
        owner=owner,
        name=name,
        kind=find_file_kind(name),
        size=len(data),
        data=data,
        readings=[each.codec for each in readings],
        tokens=0,
    )


def find_unread(owner: AbstractBaseUser, pk: UUID, codec: str) -> Upload:
    """Return the owner's unread file, to be read in this encoding. Raises TextError."""
    row = Upload.objects.filter(owner=owner, pk=pk).exclude(readings=None).first()
    if row is None:
        raise TextError("attachment_gone", _describe_gone())
    if codec not in row.readings:
        words = _("encoding must be one of: %(names)s.")
        raise FileError("bad_encoding", words % {"names": ", ".join(row.readings)})
    return row


def read_upload_ids(value: object) -> list[str]:
    """Return the ids of a command or a form, normalised. Raises TextError."""
    if not isinstance(value, list | tuple):
        raise _refuse_ids()
    if len(value) > MOST_OF_MESSAGE:
        words = _("A message can have %(limit)s attachments. Send some in another one.")
        raise TextError("too_many", words % {"limit": MOST_OF_MESSAGE})
    try:
        ids = [str(UUID(each)) for each in value]
    except (TypeError, ValueError, AttributeError):
        raise _refuse_ids() from None
    if len(set(ids)) < len(ids):
        raise _refuse_ids()
    return ids


def _refuse_ids() -> TextError:
    words = _("attachments must be a list of ids of uploaded files, each once.")
    return TextError("bad_attachments", words)


def find_files(
    owner_id: int, ids: Sequence[str], *, whole: bool = False
) -> list[Attachment]:
    """Return the owner's files of these ids, in this order.

    `whole`: with the bytes of images. Raises TextError if a file is gone or belongs to
    another user.
    """
    if not ids:
        return []
    rows = Upload.objects.filter(owner=owner_id, pk__in=ids)
    rows = rows if whole else rows.defer("data", "small")
    found = {str(row.pk): row for row in rows}
    if len(found) < len(ids):
        raise TextError("attachment_gone", _describe_gone())
    if unread := next((row for row in found.values() if row.readings), None):
        words = _("Choose the encoding of %(name)s first, or remove the file.")
        raise TextError("unsure_encoding", words % {"name": unread.name})
    return [_to_attachment(found[each]) for each in ids]


def _describe_gone() -> str:
    return _(
        "An attachment is no longer here: it was sent or removed elsewhere, or is "
        "older than a day. Attach the file again."
    )


def take_files(owner_id: int, ids: Sequence[str]) -> list[Attachment]:
    """Return find_files() and delete the uploads, which now belong to a message.

    Call it in the transaction that stores the message.
    """
    if not ids:
        return []
    found = find_files(owner_id, ids, whole=True)
    # Of two messages that name one file, one deletes it; the other finds too few.
    rows = Upload.objects.filter(owner=owner_id, pk__in=ids)
    if rows.delete()[0] < len(found):
        return find_files(owner_id, ids)
    return found


def _to_attachment(row: Upload) -> Attachment:
    values = (str(row.pk), row.name, row.kind, row.size, row.text)
    if row.image:
        return files.UploadedImage(*values, Image(**row.image), row=row)
    return Attachment(*values, long=LongText(**row.long) if row.long else None)


def keep_files(
    message: Message, taken: Sequence[Attachment], edited: Message | None
) -> None:
    """Store what is not in the text of a stored message: its images and long files.

    They are those of the files that it has taken, or of the message that was edited.
    Raises TextError.
    """
    files.keep_images(message, taken, edited)
    if any(each.long for each in taken):
        store.use_files(message.conversation, [message])


def remove_upload(owner: AbstractBaseUser, pk: UUID) -> None:
    """Forget a file that is not sent; one that is gone already is no error."""
    if Upload.objects.filter(owner=owner, pk=pk).exists():
        store.forget_uploads([pk])


def find_expired_uploads() -> QuerySet[Upload]:
    return Upload.objects.filter(created_at__lt=Now() - KEPT)


def delete_expired_uploads() -> int:
    """Delete what was not sent within a day; returns how many."""
    some = list(find_expired_uploads().values_list("pk", flat=True)[:SWEEP_AT_ONCE])
    return store.forget_uploads(some) if some else 0
