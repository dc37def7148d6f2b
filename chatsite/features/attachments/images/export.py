"""The images in an export: their bytes by message and place.

An import takes only the bytes that the message describes.
"""

import base64
import binascii
import hashlib
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from django.conf import settings
from django.utils.translation import gettext as _
from pydantic import BaseModel, Field

from chatsite.plugins import Seq
from memory import bundle
from memory.engine.attachments import Image, image_of
from memory.models import Conversation, Message
from memory.transcript import TextError

from ..models import ImageFile
from .files import check_room, read_id
from .reading import MAX_BYTES

# Of one conversation: a file with more could not be imported. The newest are in it.
MOST_OF_EXPORT = 25_000_000
MAX_SMALL = 300_000
PNG, JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"
# Of a JPEG: where a picture begins, in each way of coding, but for tables in between.
FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}


class ImageRow(BaseModel):
    """The bytes, in base64, of an image of message `seq` and of its small copy."""

    seq: Seq
    place: Annotated[int, Field(ge=0, lt=20)]
    data: Annotated[str, Field(max_length=MAX_BYTES * 2)]
    small: Annotated[str, Field(max_length=MAX_SMALL * 2)]


def read_exported(conversation: Conversation) -> list[dict[str, Any]]:
    rows = conversation.image_files.order_by("-message__seq", "-pk")
    size, keys = 0, []
    for pk, each in rows.values_list("pk", "size"):
        size += each
        if size > MOST_OF_EXPORT:
            break
        keys.append(pk)
    found = conversation.image_files.filter(pk__in=keys).select_related("message")
    return [
        {
            **{"seq": row.message.seq, "place": place},
            **{"data": _encode_bytes(row.data), "small": _encode_bytes(row.small)},
        }
        for row in found.order_by("message__seq", "pk")
        for place, file in enumerate(row.message.attachments)
        if read_id(file["id"]) == row.file_id
    ]


def _encode_bytes(data: bytes) -> str:
    return base64.b64encode(data).decode()


def write_exported(
    conversation: Conversation,
    messages: Mapping[int, Message],
    rows: Sequence[ImageRow],
    batch: bundle.Batch = bundle.at_once,
) -> str:
    """Store the images that match their messages, as far as the owner has room.

    Of the others only the names stay; return a sentence on these.
    """
    written: set[tuple[int, Any]] = set()
    left = 0
    for made in _read_files(conversation, messages, rows):
        key = (made.message.pk, made.file_id)
        if key in written:
            continue
        written.add(key)
        try:
            check_room(conversation.owner_id, made.size)
        except TextError:
            left += 1
            continue
        with batch(0):
            made.save()
    if not left:
        return ""
    words = _(
        "Images for which there is no room, as yours may have %(room)s MB: %(count)s."
    )
    return words % {"room": settings.IMAGES_PER_PERSON_MB, "count": left}


def _read_files(
    conversation: Conversation,
    messages: Mapping[int, Message],
    rows: Sequence[ImageRow],
) -> Iterator[ImageFile]:
    for row in rows:
        message = messages.get(row.seq)
        files = message.attachments if message else []
        file = files[row.place] if row.place < len(files) else None
        said, file_id = (image_of(file), read_id(file["id"])) if file else (None, None)
        data, small = _decode_bytes(row.data), _decode_bytes(row.small)
        if message and said and file_id and is_said(data, said) and is_small(small):
            yield ImageFile(
                conversation=conversation,
                message=message,
                file_id=file_id,
                type=said.type,
                size=len(data) + len(small),
                data=data,
                small=small,
            )


def _decode_bytes(text: str) -> bytes:
    try:
        return binascii.a2b_base64(text)
    except ValueError:
        return b""


def is_said(data: bytes, said: Image) -> bool:
    """Return whether these are the bytes that the message describes."""
    pixels = said.width * said.height
    return (
        len(data) <= MAX_BYTES
        and pixels <= settings.IMAGE_MAX_MEGAPIXELS * 10**6
        and hashlib.sha256(data).hexdigest() == said.sha256
        and measure_bytes(data) == (said.type, said.width, said.height)
    )


def is_small(data: bytes) -> bool:
    measured = measure_bytes(data)
    if measured is None or len(data) > MAX_SMALL:
        return False
    kind, width, height = measured
    return kind == "image/jpeg" and max(width, height) <= settings.IMAGE_MAX_SIDE


def measure_bytes(data: bytes) -> tuple[str, int, int] | None:
    """Return the media type, width and height of a PNG or a JPEG, None for others.

    They are read from its head; nothing is decoded.
    """
    if data.startswith(PNG) and data[12:16] == b"IHDR" and len(data) >= 24:
        return ("image/png", *struct.unpack(">II", data[16:24]))
    return _measure_jpeg(data) if data.startswith(JPEG) else None


def _measure_jpeg(data: bytes) -> tuple[str, int, int] | None:
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        if data[at + 1] in FRAMES:
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return "image/jpeg", width, height
        at += 2 + max(2, int.from_bytes(data[at + 2 : at + 4], "big"))
    return None
