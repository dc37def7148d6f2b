"""The text of PDFs, read by a program of its own with limits on time, memory, pages and
text.
"""

import json
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.utils.translation import gettext as _

from memory.transcript import WHOLE_CHARS

from . import processes
from .errors import FileError
from .processes import Leave

PROGRAM = Path(__file__).with_name("pdf_text.py")
MAX_PAGES = 1_000


async def read_pdf(
    user_id: int,
    file: IO[bytes],
    leave: Leave,
    *,
    chars: int = WHOLE_CHARS,
    pages: list[int] | None = None,
    left_out: dict[str, int] | None = None,
) -> str:
    """The text of a PDF, of up to `chars` characters, its pages parted by empty lines;
    where each begins is added to `pages`, and to `left_out` how many have none. Raises
    FileError. The file is read into memory when it is its turn; `leave`: see
    processes.await_turn()."""
    async with processes.await_turn(user_id, leave):
        answer = await _run_program(file.read(), chars)
    text, starts = answer.get("text"), answer.get("pages")
    if isinstance(text, str):
        if pages is not None and isinstance(starts, list):
            pages += starts
        if left_out is not None:
            left_out |= answer.get("left_out") or {}
        return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    raise _make_refusal(str(answer.get("error")), answer.get("count"), chars)


async def _run_program(data: bytes, chars: int) -> dict[str, Any]:
    answer = await processes.run_program(
        PROGRAM,
        *(MAX_PAGES, chars),
        data=data,
        seconds=settings.PDF_MAX_SECONDS,
        megabytes=settings.PDF_MEMORY_MB,
    )
    try:
        return json.loads(answer)
    except ValueError:
        return {"error": "too_complex"}


def _make_refusal(code: str, count: object, chars: int) -> FileError:
    sentences = {
        "encrypted": _(
            "The PDF is protected with a password. Save a copy without one and attach "
            "that."
        ),
        "too_many_pages": _(
            "The PDF has %(count)s pages; the limit is %(limit)s. Attach only the "
            "pages that matter."
        ),
        "too_long": _(
            "The PDF has more than %(chars)s characters of text. Attach only the pages "
            "that matter."
        ),
        "no_text": _(
            "The PDF has no text: its pages are probably scanned pictures. Run text "
            "recognition (OCR) on it first, or paste the text."
        ),
        "broken": _(
            "The PDF can't be read: it is damaged or incomplete. Open it elsewhere, "
            "save it again and attach that."
        ),
        "too_complex": _(
            "The PDF takes too much time or memory to read. Attach only the pages that "
            "matter, or paste the text."
        ),
    }
    code = code if code in sentences else "too_complex"
    values = {"count": count, "limit": MAX_PAGES, "chars": f"{chars:,}"}
    return FileError(code, sentences[code] % values)
