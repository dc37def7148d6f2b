"""Names of files, as they may be shown, stored and sent."""

import re
import unicodedata

MAX_CHARS = 100
WITHOUT_NAME = "file.txt"


def clean_file_name(name: str) -> str:
    """The last part of a path, on one line, without anything that can't be seen or that
    turns the direction of writing; at most MAX_CHARS long, with its ending."""
    last = re.split(r"[/\\]", unicodedata.normalize("NFC", name))[-1]
    # Of category C: control and format characters, halves of pairs, what is no letter.
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
    """The ending, in small letters and without its dot: "pdf"; "" if there is none."""
    stem, dot, ending = name.rpartition(".")
    is_ending = stem and dot and re.fullmatch(r"[A-Za-z0-9_+-]{1,12}", ending)
    return ending.casefold() if is_ending else ""
