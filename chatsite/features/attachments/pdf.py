"""The text of PDFs, read by a program with limits on time, memory, pages and text."""

from pathlib import Path
from typing import IO

from django.utils.translation import gettext as _

from memory.transcript import WHOLE_CHARS

from . import processes
from .documents.reading import make_refusal
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
    """Return the text of a PDF, of up to `chars` characters, empty lines between pages.

    The start of each page is added to `pages`, and the number of pages without text to
    `left_out`. The file is read into memory when it is its turn; `leave`: see
    processes.await_turn(). Raises FileError.
    """
    async with processes.await_turn(user_id, leave):
        answer = await processes.read_document(
            PROGRAM, MAX_PAGES, chars, data=file.read()
        )
    if "text" not in answer:
        raise _make_refusal(answer.get("error"), answer.get("count"), chars)
    if pages is not None:
        pages += answer.get("pages", ())
    if left_out is not None:
        left_out |= answer.get("left_out", {})
    return answer["text"]


def _make_refusal(code: object, count: object, chars: int) -> FileError:
    sentences = {
        "too_many_pages": _(
            "The PDF has %(count)s pages; the limit is %(limit)s. Attach only the "
            "pages that matter."
        ),
        "no_text": _(
            "The PDF has no text: its pages are probably scanned pictures. Run text "
            "recognition (OCR) on it first, or paste the text."
        ),
    }
    if code not in sentences:
        return make_refusal(code, "", chars)
    values = {"count": count, "limit": MAX_PAGES}
    return processes.make_refusal(sentences, code, values)
