"""The text of a PDF: a program of its own, started by pdf.py, that takes the file on
standard input and answers with JSON on standard output.

It has no environment, no database and no settings.
"""

import json
import sys
from collections.abc import Iterable
from typing import Any

# What an unreadable file raises in pypdf is not limited to its own errors.
BROKEN = (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError)


def read_pages(pages: int, chars: int) -> dict[str, object]:
    """The text, and where in it each page begins, or a code for why there is none."""
    from io import BytesIO

    from pypdf import PdfReader, errors

    try:
        reader = PdfReader(BytesIO(sys.stdin.buffer.read()), strict=False)
        # Many have an empty password, and open for everybody.
        if reader.is_encrypted and not reader.decrypt(""):
            return {"error": "encrypted"}
        if (count := len(reader.pages)) > pages:
            return {"error": "too_many_pages", "count": count}
        return join_pages(reader.pages, chars)
    except (errors.DependencyError, errors.FileNotDecryptedError):
        return {"error": "encrypted"}
    except (errors.PyPdfError, *BROKEN):
        return {"error": "broken"}
    except (MemoryError, RecursionError):
        return {"error": "too_complex"}


def join_pages(pages: Iterable[Any], chars: int) -> dict[str, object]:
    parts, size, starts = [], 0, []
    for page in pages:
        # An empty one begins where the next one does.
        starts.append(size)
        if part := page.extract_text().strip():
            parts.append(part)
            size += len(part) + 2
        if size > chars:
            return {"error": "too_long"}
    if not parts:
        return {"error": "no_text"}
    return {"text": "\n\n".join(parts), "pages": starts}


if __name__ == "__main__":
    pages, chars = map(int, sys.argv[1:])
    # Halves of surrogate pairs, which a font can map to, are written as escapes.
    sys.stdout.write(json.dumps(read_pages(pages, chars)))
