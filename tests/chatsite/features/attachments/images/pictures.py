"""Images for tests, made by Pillow or written by hand."""

import io
import struct
import zlib
from functools import cache

from PIL import Image


@cache
def make(kind="PNG", size=(40, 30), colour="red", mode="RGB", **options):
    out = io.BytesIO()
    Image.new(mode, size, colour).save(out, kind, **options)
    return out.getvalue()


def with_words(word):
    """A photo whose EXIF and comment say something, turned by a quarter."""
    exif = Image.Exif()
    exif[0x010E], exif[0x0112] = word, 6
    return make("JPEG", exif=exif.tobytes(), comment=word)


def bomb(width, height):
    """A PNG that says that it has so many pixels, and packs a row of them."""
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    rows = zlib.compress(bytes(100_000), 9)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data))
        + name
        + data
        + struct.pack(">I", zlib.crc32(name + data))
        for name, data in ((b"IHDR", header), (b"IDAT", rows), (b"IEND", b""))
    )


def open_image(data):
    return Image.open(io.BytesIO(bytes(data)))


def make_animation(frames):
    out = io.BytesIO()
    first, *others = frames
    first.save(out, "GIF", save_all=True, append_images=others)
    return out.getvalue()


def noise(side):
    """Return an image that every format stores in many bytes."""
    out = io.BytesIO()
    Image.effect_noise((side, side), 100).save(out, "PNG")
    return out.getvalue()
