"""The text of a PDF: a program of its own, started by pdf.py, that takes the file on
standard input and answers with JSON on standard output.

It has no environment, no database and no settings, sets its own limits before it reads
a byte, and is stopped from outside if all of that fails.
"""

import json
import os
import resource
import sys

# What an unreadable file raises in pypdf is not limited to its own errors.
BROKEN = (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError)


def set_limits(seconds: int, memory: int) -> None:
    os.nice(10)
    for name, most in (
        ("RLIMIT_AS", memory),
        ("RLIMIT_CPU", seconds),
        ("RLIMIT_FSIZE", 0),
        ("RLIMIT_CORE", 0),
    ):
        resource.setrlimit(getattr(resource, name), (most, most))


def read_pages(pages: int, chars: int) -> dict[str, object]:
    """The text, or a code for why there is none."""
    from io import BytesIO

    from pypdf import PdfReader, errors

    try:
        reader = PdfReader(BytesIO(sys.stdin.buffer.read()), strict=False)
        # Many have an empty password, and open for everybody.
        if reader.is_encrypted and not reader.decrypt(""):
            return {"error": "encrypted"}
        if (count := len(reader.pages)) > pages:
            return {"error": "too_many_pages", "count": count}
        parts, size = [], 0
        for page in reader.pages:
            parts.append(page.extract_text().strip())
            size += len(parts[-1]) + 2
            if size > chars:
                return {"error": "too_long"}
    except (errors.DependencyError, errors.FileNotDecryptedError):
        return {"error": "encrypted"}
    except (errors.PyPdfError, *BROKEN):
        return {"error": "broken"}
    except (MemoryError, RecursionError):
        return {"error": "too_complex"}
    text = "\n\n".join(filter(None, parts))
    return {"text": text} if text.strip() else {"error": "no_text"}


if __name__ == "__main__":
    seconds, memory, pages, chars = map(int, sys.argv[1:])
    set_limits(seconds, memory)
    # Halves of surrogate pairs, which a font can map to, are written as escapes.
    sys.stdout.write(json.dumps(read_pages(pages, chars)))
