"""The text of a PDF: a program of its own, started by pdf.py, that takes the file on
standard input and answers with JSON on standard output.

It has no environment, no database and no settings.
"""

import json
import sys

# What an unreadable file raises in pypdf is not limited to its own errors.
BROKEN = (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError)


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
    pages, chars = map(int, sys.argv[1:])
    # Halves of surrogate pairs, which a font can map to, are written as escapes.
    sys.stdout.write(json.dumps(read_pages(pages, chars)))
