"""The program that scales an image down and draws it again from its pixels alone.

reading.py starts it; it takes the file on standard input and answers on standard output
with a line of JSON and the bytes of two images, the second one small. It has no
environment, no database and no settings. Metadata of a camera, a program or an attacker
is not copied.
"""

import json
import sys
import warnings
from hashlib import sha256
from io import BytesIO
from typing import Any

# For an unreadable file, Pillow raises more than its own errors.
BROKEN = (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError)
BROKEN += (EOFError, SyntaxError)
# The formats that reading.py accepts.
FORMATS = ("PNG", "JPEG", "WEBP", "GIF")
SMALL_SIDE, LEAST_SIDE = 480, 64
QUALITIES = (85, 70, 50, 30)
TYPES = {"PNG": "image/png", "JPEG": "image/jpeg"}


def shrink_image(data: bytes, side: int, pixels: int, most: int) -> bytes:
    """Return the image within `side` pixels and `most` bytes, or an error code."""
    # WebP's module by hand, or Pillow would load those of all kinds.
    from PIL import Image, WebPImagePlugin  # noqa: F401

    warnings.simplefilter("error", Image.DecompressionBombWarning)
    Image.MAX_IMAGE_PIXELS = pixels
    try:
        with Image.open(BytesIO(data), formats=FORMATS) as found:
            is_photo = found.format in ("JPEG", "MPO")  # what iPhones write
            drawn = _draw_again(found, side)
        whole, kind = _write_image(drawn, most, is_photo=is_photo)
        drawn.thumbnail((SMALL_SIDE, SMALL_SIDE))
        small, _kind = _write_image(drawn, most, is_photo=True)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        return _answer({"error": "too_many_pixels"})
    except (MemoryError, RecursionError):
        return _answer({"error": "too_complex"})
    except BROKEN:
        return _answer({"error": "broken"})
    said = {"type": TYPES[kind], "sha256": sha256(whole[0]).hexdigest()}
    said |= {
        "width": whole[1],
        "height": whole[2],
        "sizes": [len(whole[0]), len(small[0])],
    }
    return _answer(said) + whole[0] + small[0]


def _answer(said: dict[str, Any]) -> bytes:
    return json.dumps(said).encode() + b"\n"


def _draw_again(found: Any, side: int) -> Any:
    """Draw the first picture of the file again, upright and without metadata."""
    from PIL import Image, ImageOps

    found.draft("RGB", (side, side))  # a photo is decoded at a part of its size
    has_alpha = "A" in found.getbands() or "transparency" in found.info
    upright = ImageOps.exif_transpose(found)
    if upright.mode.startswith("I"):
        # 16 bits of grey, of which Pillow would keep the lower half.
        upright = upright.convert("I").point(lambda value: value / 256).convert("L")
    upright = upright.convert("RGBA" if has_alpha else "RGB")
    upright.thumbnail((side, side), Image.Resampling.LANCZOS)
    drawn = Image.new(upright.mode, upright.size)
    drawn.paste(upright)
    return drawn


def _write_image(
    drawn: Any, most: int, *, is_photo: bool
) -> tuple[tuple[bytes, int, int], str]:
    """Return the bytes with width and height, and the kind: the best that fits."""
    if not is_photo and len(data := _save(drawn, "PNG")) <= most:
        return (data, *drawn.size), "PNG"
    flat = _flatten(drawn)
    while True:
        for quality in QUALITIES:
            data = _save(flat, "JPEG", quality=quality)
            if len(data) <= most or max(flat.size) < LEAST_SIDE:
                return (data, *flat.size), "JPEG"
        flat.thumbnail((flat.width // 2, flat.height // 2))


def _flatten(drawn: Any) -> Any:
    from PIL import Image

    flat = Image.new("RGB", drawn.size, "white")
    flat.paste(drawn, mask=drawn if drawn.mode == "RGBA" else None)
    return flat


def _save(drawn: Any, kind: str, **options: Any) -> bytes:
    out = BytesIO()
    drawn.save(out, kind, **options)
    return out.getvalue()


if __name__ == "__main__":
    limits = map(int, sys.argv[1:])
    sys.stdout.buffer.write(shrink_image(sys.stdin.buffer.read(), *limits))
