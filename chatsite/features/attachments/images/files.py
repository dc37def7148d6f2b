"""The rows of images: kept with the message that takes them, and gone with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Sum
from django.utils.translation import gettext as _

from chatsite.protocol.errors import CommandError
from memory.engine.attachments import Attachment
from memory.models import Conversation, Message
from memory.transcript import TextError

from ..models import ImageFile, Upload

SMALL_TYPE = "image/jpeg"


@dataclass(frozen=True, slots=True)
class UploadedImage(Attachment):
    """An image with the row that has its bytes."""

    row: Upload | None = None


def check_room(owner_id: int, size: int) -> None:
    """Raise TextError if the owner's images have no room for so many more bytes."""
    limit = settings.IMAGES_PER_PERSON_MB
    if size and _count_bytes(conversation__owner=owner_id) + size > limit * 1024 * 1024:
        words = _(
            "Your images have %(limit)s MB, which is the limit. Delete messages or "
            "conversations with images, then attach this one again."
        )
        raise TextError("too_many", words % {"limit": limit})


def _count_bytes(**wanted: Any) -> int:
    rows = ImageFile.objects.filter(**wanted)
    return rows.aggregate(all=Sum("size"))["all"] or 0


def keep_images(
    message: Message, taken: Sequence[Attachment], edited: Message | None
) -> None:
    """Store the images of the files that a stored message has taken.

    If a message was edited, copy the images of the original instead. Raises TextError
    if there are too many.
    """
    if edited:
        _copy_images(message.conversation, {message: edited})
    ImageFile.objects.bulk_create(
        ImageFile(
            conversation=message.conversation,
            message=message,
            file_id=each.id,
            type=each.image.type,
            size=len(each.row.data) + len(each.row.small),
            data=each.row.data,
            small=each.row.small,
        )
        for each in taken
        if isinstance(each, UploadedImage) and each.image and each.row
    )


def has_images(message: Message) -> bool:
    return any(place.get("image") for place in message.attachments)


def _copy_images(
    conversation: Conversation, originals: Mapping[Message, Message]
) -> None:
    """Copy to each message of the conversation the images of its original."""
    copied = {made: row for made, row in originals.items() if has_images(made)}
    if not copied:
        return
    size = _count_bytes(message__in=[*copied.values()])
    check_room(conversation.owner_id, size)
    for made, original in copied.items():
        for row in ImageFile.objects.filter(message=original):
            row.pk, row._state.adding = None, True
            row.conversation, row.message = conversation, made
            row.save()


def copy_branch(
    conversation: Conversation, branch: Conversation, messages: Mapping[int, Message]
) -> None:
    """Copy the images to the messages of a branch. Raises CommandError without room."""
    copies = {row.seq: row for row in messages.values() if has_images(row)}
    rows = conversation.messages.filter(seq__in=copies) if copies else ()
    try:
        _copy_images(branch, {copies[row.seq]: row for row in rows})
    except TextError as error:
        raise CommandError(error.code, error.detail) from None


def has_any_image(conversation: Conversation) -> bool:
    return conversation.image_files.exists()


def read_image_of(
    conversation: Conversation, seq: int, place: int, is_small: bool
) -> tuple[str, bytes] | None:
    """Return the media type and the bytes of an image, or of its small copy.

    None if there is none at this place of message `seq`.
    """
    message = conversation.messages.filter(seq=seq).only("attachments").first()
    if message is None or place >= len(message.attachments):
        return None
    file_id = read_id(message.attachments[place]["id"])
    row = ImageFile.objects.filter(message=message, file_id=file_id).first()
    if row is None:
        return None
    return (SMALL_TYPE, bytes(row.small)) if is_small else (row.type, bytes(row.data))


def read_id(value: Any) -> UUID | None:
    """Return the UUID, None if it is not valid: an import can contain any text."""
    try:
        return UUID(str(value))
    except ValueError:
        return None


def forget_images(conversation: Conversation, seq: int, **_: object) -> None:
    """Message `seq` was deleted."""
    conversation.image_files.filter(message__seq=seq).delete()
