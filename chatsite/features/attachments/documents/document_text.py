"""The program that reads the text of a document.

reading.py starts it; it takes the file on standard input and answers with JSON on
standard output. It has no environment, no database and no settings. Only parts with
text are unpacked, and none of them is written to a disk; embedded files are never
opened, and nothing is fetched.
"""

import json
import re
import sys
import zipfile
from functools import partial
from xml.parsers import expat

from chatsite.features.attachments.documents.office import read_docx, read_pptx
from chatsite.features.attachments.documents.opendocument import (
    TYPES,
    read_opendocument,
)
from chatsite.features.attachments.documents.pages import (
    find_title,
    read_eml,
    read_epub,
    read_web_page,
)
from chatsite.features.attachments.documents.parts import Parts, Text, UnreadableError
from chatsite.features.attachments.documents.sheets import read_xlsx
from chatsite.features.attachments.encodings import decode_page

# For an unreadable file, the standard library raises more than its own errors.
BROKEN = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, OSError, TypeError),
    *(ValueError, NotImplementedError, expat.ExpatError, zipfile.BadZipFile),
)

ZIPPED = {"docx": read_docx, "xlsx": read_xlsx, "pptx": read_pptx, "epub": read_epub}
ZIPPED |= {each: partial(read_opendocument, each) for each in TYPES}
PLAIN = {"html": read_web_page, "eml": read_eml}
FETCHED = "page"


def extract_text(
    kind: str, data: bytes, chars: int, charset: str = ""
) -> dict[str, object]:
    """Return the text, or the code of an error.

    For a page that was fetched from the web, also return its title, and as much of its
    text as the limit allows.
    """
    text, more = Text(chars), {}
    try:
        if kind == FETCHED:
            more = {"title": find_title(decode_page(data, charset))}
            read_web_page(data, text, charset)
        elif kind in ZIPPED:
            ZIPPED[kind](Parts(data), text)
        else:
            PLAIN[kind](data, text)
    except UnreadableError as error:
        if kind != FETCHED:
            return {"error": str(error)}
        more["is_cut"] = True
    except BROKEN:
        return {"error": "broken"}
    except (MemoryError, RecursionError):
        return {"error": "too_complex"}
    # Ends of lines without what can't be seen, and no more than one empty line.
    lines = (line.rstrip() for line in "".join(text.parts).split("\n"))
    whole = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")
    if not whole.strip():
        return {"error": "no_text"}
    return {"text": whole, "left_out": text.left_out, **more}


if __name__ == "__main__":
    kind, chars, *charset = sys.argv[1:]
    data = sys.stdin.buffer.read()
    sys.stdout.write(json.dumps(extract_text(kind, data, int(chars), *charset)))
