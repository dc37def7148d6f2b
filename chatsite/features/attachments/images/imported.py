"""Images out of the archives of other chats, for messages that are imported."""

from collections.abc import Sequence
from io import BytesIO
from uuid import uuid4

from asgiref.sync import async_to_sync

from memory.engine.attachments import Attachment, describe_image
from memory.engine.file_names import clean_file_name, find_file_kind

from ..models import Upload
from ..reading import check_file_size, hold_nothing
from .files import UploadedImage, check_room
from .reading import ENDINGS, check_image_kind, read_image

# As much of a file as tells its kind.
HEAD = 64


def read_imported(
    owner_id: int, name: str, data: bytes, beside: Sequence[Attachment]
) -> UploadedImage:
    """Return the image in an imported file, ready for keep_images().

    Its kind comes from its bytes, because archives name files in their own way. The
    owner needs room for it and for those `beside` it. Raises TextError.
    """
    check_file_size(len(data))
    check_image_kind(name, "png", data[:HEAD])
    read = async_to_sync(read_image)(owner_id, BytesIO(data), hold_nothing)
    row = Upload(data=read.data, small=read.small)
    others = [each.row for each in beside if isinstance(each, UploadedImage)]
    sizes = (len(each.data) + len(each.small) for each in [row, *others] if each)
    check_room(owner_id, sum(sizes))
    shown = clean_file_name(name)
    if find_file_kind(shown) not in ENDINGS[1:]:
        shown += "." + read.image.type.removeprefix("image/")
    size = len(read.data)
    text = describe_image(shown, read.image, size)
    kind = find_file_kind(shown)
    return UploadedImage(str(uuid4()), shown, kind, size, text, read.image, row=row)
