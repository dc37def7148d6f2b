"""Images as they are stored: scaled down by a separate program, or a reason why not."""

import json
import re
from pathlib import Path
from typing import IO, NamedTuple

from django.conf import settings
from django.utils.translation import gettext as _

from memory.engine.attachments import Image

from .. import processes
from ..documents.reading import make_refusal
from ..errors import FileError
from ..processes import Leave

PROGRAM = Path(__file__).with_name("shrink.py")
# How a file of each kind begins that can be read, and one of iPhones that can't.
BEGINS = re.compile(
    rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|GIF8[79]a|RIFF....WEBP", re.DOTALL
)
HEIC = re.compile(rb"....ftyp(?:hei[cmsx]|hev[cmsx]|mif1|msf1)", re.DOTALL)
# A file without an ending is taken for what it is.
ENDINGS = ("", "png", "jpg", "jpeg", "jfif", "webp", "gif")
HEIC_ENDINGS = ("heic", "heif")
# The limit of a stored image, and of the program's output.
MAX_BYTES = 1_000_000


class ReadImage(NamedTuple):
    """An image as it is kept: its bytes, and those of a small one for the page."""

    image: Image
    data: bytes
    small: bytes


async def read_image(user_id: int, file: IO[bytes], leave: Leave) -> ReadImage:
    """Return the image in a file.

    The file is read into memory when it is its turn; `leave`: see
    processes.await_turn(). Raises FileError.
    """
    async with processes.await_turn(user_id, leave):
        answer = await processes.run_program(
            PROGRAM,
            *(settings.IMAGE_MAX_SIDE, settings.IMAGE_MAX_MEGAPIXELS * 10**6),
            MAX_BYTES,
            data=file.read(),
            seconds=settings.IMAGE_MAX_SECONDS,
            megabytes=settings.IMAGE_MEMORY_MB,
        )
    line, _mark, rest = answer.partition(b"\n")
    try:
        said = json.loads(line)
    except ValueError:
        said = {}
    if "sizes" not in said:
        raise _refuse_image(said.get("error", ""))
    whole, small = said.pop("sizes")
    return ReadImage(Image(**said), rest[:whole], rest[whole : whole + small])


def _refuse_image(code: str) -> FileError:
    sentences = {
        "too_many_pixels": _(
            "The image has more than %(limit)s million pixels. Make it smaller and "
            "attach that."
        ),
        "too_complex": _(
            "The image takes too much time or memory to read. Make it smaller and "
            "attach that."
        ),
    }
    if code == "broken":
        return make_refusal(code, "")
    values = {"limit": settings.IMAGE_MAX_MEGAPIXELS}
    return processes.make_refusal(sentences, code, values)


def check_image_kind(name: str, kind: str, head: bytes) -> bool:
    """Return whether a file that begins like this is an image.

    Raises FileError if its name says something else, or if its kind can't be read.
    """
    if HEIC.match(head):
        words = _(
            "%(name)s is a HEIC image, which can't be read here. Save it as JPEG and "
            "attach that."
        )
        raise FileError("wrong_kind", words % {"name": name})
    is_image = bool(BEGINS.match(head))
    is_named = bool(kind) and kind in (*ENDINGS, *HEIC_ENDINGS)
    if is_named != is_image or (is_image and kind not in ENDINGS):
        raise make_refusal("wrong_kind", name)
    return is_image
