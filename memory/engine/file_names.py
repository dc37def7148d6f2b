"""Names of files, as they may be shown, stored and sent."""

import re
import unicodedata

MAX_CHARS = 100
WITHOUT_NAME = "file.txt"


def clean_file_name(name: str) -> str:
    """Return the last part of a path on one line, at most MAX_CHARS long.

    Characters that are invisible or change the direction of writing are removed; the
    extension is kept.
    """
    last = re.split(r"[/\\]", unicodedata.normalize("NFC", name))[-1]
    # Category C: control and format characters, surrogates, unassigned code points.
    seen = "".join(
        " " if char.isspace() else char
        for char in last
        if char.isspace() or not unicodedata.category(char).startswith("C")
    )
    short = " ".join(seen.split()).strip(". ")
    if len(short) > MAX_CHARS:
        stem, dot, ending = short.rpartition(".")
        ending = dot + ending if dot and len(ending) <= 10 else ""
        stem = stem if ending else short
        short = stem[: MAX_CHARS - len(ending) - 1] + "…" + ending
    return short or WITHOUT_NAME


def find_file_kind(name: str) -> str:
    """Return the extension in lower case and without its dot, as in "pdf", or ""."""
    stem, dot, ending = name.rpartition(".")
    is_ending = stem and dot and re.fullmatch(r"[A-Za-z0-9_+-]{1,12}", ending)
    return ending.casefold() if is_ending else ""
