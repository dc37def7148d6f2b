"""The program that reads the text of a PDF.

pdf.py starts it; it takes the file on standard input and answers with JSON on standard
output. It has no environment, no database and no settings.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

# For an unreadable file, pypdf raises more than its own errors.
BROKEN = (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError)


def read_pages(pages: int, chars: int) -> dict[str, object]:
    """Return the text and the start of each page, or the code of an error."""
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
    from pypdf.errors import PyPdfError

    parts, size, starts = [], 0, []
    left_out: Counter[str] = Counter()
    known: set[int] = set()
    for page in pages:
        # An empty one begins where the next one does.
        starts.append(size)
        printed = page.extract_text().strip()
        try:
            written = "\n".join(list_written(page, known))
        except (PyPdfError, *BROKEN):
            # The words of the page are whole nevertheless.
            written = ""
            left_out["form"] += 1
        left_out["page"] += not printed
        if part := "\n\n".join(filter(None, (printed, written))):
            parts.append(part)
            size += len(part) + 2
        if size > chars:
            return {"error": "too_long"}
    if not parts:
        return {"error": "no_text"}
    text = "\n\n".join(parts)
    return {"text": text, "pages": starts, "left_out": left_out}


# The depth of fields inside of each other.
MAX_DEPTH = 20
PUSH_BUTTON, RADIO = 1 << 16, 1 << 15
PASSWORD = 1 << 13
NOTES = ("/Text", "/Highlight", "/Underline", "/Squiggly", "/StrikeOut", "/Caret")


def list_written(page: Any, known: set[int]) -> Iterator[str]:
    """Yield the words of a page besides its text: a line per form field and per note.

    `known`: the fields that other pages have shown.
    """
    annotations = page.get("/Annots")
    for each in annotations.get_object() if annotations else ():
        annotation = each.get_object()
        kind, said = annotation.get("/Subtype"), annotation.get("/Contents")
        said = str(said or "").strip()
        if kind == "/Widget":
            said = show_field(annotation, known)
        elif kind in NOTES:
            said = f"Note: {said}" if said else ""
        elif kind != "/FreeText":
            said = ""
        if said:
            yield said


def show_field(widget: Any, known: set[int]) -> str:
    """Return the name and value of a widget's field, "" if it has none or is known."""
    chain = [widget]
    while "/Parent" in chain[-1] and len(chain) < MAX_DEPTH:
        chain.append(chain[-1]["/Parent"])
    named = [each for each in chain if "/T" in each]
    # All widgets of a field show its one value.
    field = named[0] if named else widget
    reference = getattr(field, "indirect_reference", None)
    if reference and reference.idnum in known:
        return ""
    known.update({reference.idnum} if reference else ())

    def inherit(name: str) -> Any:
        return next((each[name] for each in chain if name in each), None)

    value = show_value(inherit)
    title = field.get("/TU") or ".".join(str(each["/T"]) for each in reversed(named))
    return f"{title}: {value}".strip() if value else ""


def show_value(inherit: Callable[[str], Any]) -> str:
    kind, flags, value = inherit("/FT"), int(inherit("/Ff") or 0), inherit("/V")
    if kind == "/Btn":
        if flags & PUSH_BUTTON:
            return ""
        chosen = str(value or inherit("/AS") or "/Off").lstrip("/")
        if flags & RADIO:
            return "" if chosen == "Off" else chosen
        return "☐ no" if chosen == "Off" else "☒ yes"
    if kind == "/Sig":
        return "signed" if value else ""
    if value is None or kind == "/Tx" and flags & PASSWORD:
        return ""
    values = value if isinstance(value, list) else [value]
    shown = dict(map(read_option, inherit("/Opt") or ())) if kind == "/Ch" else {}
    return ", ".join(shown.get(read_text(each), read_text(each)) for each in values)


def read_option(option: Any) -> tuple[str, str]:
    """Return the value of a choice and its label."""
    pair = option.get_object()
    pair = pair if isinstance(pair, list) else [pair, pair]
    return read_text(pair[0]), read_text(pair[-1])


def read_text(value: Any) -> str:
    """Return a text, which is a stream if it is long."""
    value = value.get_object()
    if hasattr(value, "get_data"):
        value = value.get_data().decode("utf-8", "replace")
    return str(value).replace("\r\n", "\n").replace("\r", "\n").strip()


if __name__ == "__main__":
    pages, chars = map(int, sys.argv[1:])
    # Halves of surrogate pairs, which a font can map to, are written as escapes.
    sys.stdout.write(json.dumps(read_pages(pages, chars)))
