"""The text of Excel's workbooks.

It knows no Django: it runs in the program of document_text.py.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import partial

from .charts import read_drawn
from .number_formats import Show, read_formats, show_general
from .office import OfficeText
from .parts import (
    Parts,
    Text,
    find_main,
    list_elements,
    list_ids,
    parse_into,
    parse_xml,
)

# Empty columns between two cells that are shown as such.
MAX_GAP = 50
# Codes in the header of a sheet.
HEADER_CODES = re.compile(r'&(?:"[^"]*"|\d{1,3}|K[0-9A-F]{6}|.)')
HEADERS = re.compile(r"(?:odd|even|first)(Header|Footer)")


def pass_on_texts(
    data: bytes, wanted: str, take: Callable[[dict[str, str], str], None]
) -> None:
    """Pass on the attributes and the text of each element with the wanted tag."""
    opened: dict[str, dict[str, str]] = {}
    said: list[str] = []

    def end(tag: str) -> None:
        attributes = opened.pop(tag, {})
        if tag == wanted:
            take(attributes, "".join(said))
            said.clear()

    def say(part: str) -> None:
        # The pronunciation is beside the text.
        if "t" in opened and "rPh" not in opened:
            said.append(part)

    parse_xml(data, opened.__setitem__, end, say)


class SheetText:
    """The rows of a sheet as lines, their cells parted by tabs."""

    def __init__(
        self, text: Text, shared: list[str], formats: list[Show], origin: datetime
    ) -> None:
        self._text, self._shared, self._formats = text, shared, formats
        self._origin = origin
        self._column = self._next = 0
        self._kind, self._style = "n", 0
        self._has_formula = False
        # The elements that are open.
        self._path: list[str] = []
        self._said: list[str] = []
        self._formula: list[str] = []
        self.headers: dict[str, str] = {}

    def start_element(self, tag: str, attributes: dict[str, str]) -> None:
        self._path.append(tag)
        if tag == "row":
            self._column = self._next = 0
        elif tag == "c":
            letters = re.match(r"[A-Z]{1,3}", attributes.get("r", ""))
            self._next = number_column(letters[0]) if letters else self._next + 1
            self._kind = attributes.get("t", "n")
            self._style = int(attributes.get("s", "0"))
            self._has_formula = False
        elif tag == "f":
            self._has_formula = True

    def add_characters(self, part: str) -> None:
        tag = self._path[-1]
        if tag == "f":
            self._formula.append(part)
        elif (tag in ("v", "t") or HEADERS.fullmatch(tag)) and "rPh" not in self._path:
            self._said.append(part)

    def end_element(self, tag: str) -> None:
        self._path.pop()
        if tag == "c":
            self._end_cell()
        elif tag == "row" and self._column:
            self._text.add_text("\n")
        elif found := HEADERS.fullmatch(tag):
            words = HEADER_CODES.sub(" ", "".join(self._said))
            self.headers[" ".join(words.split())] = found[1]
            self._said.clear()

    def _end_cell(self) -> None:
        value, formula = "".join(self._said), "".join(self._formula)
        self._said.clear()
        self._formula.clear()
        if value:
            shown = self._show(value)
        elif self._has_formula:
            # No program has worked it out.
            shown = f"={formula}" if formula else "=…"
            self._text.left_out["formula"] += 1
        else:
            return
        gap = self._next - self._column - (self._column == 0)
        self._text.add_text("\t" * max(0, min(gap, MAX_GAP)) + shown)
        self._column = self._next

    def _show(self, value: str) -> str:
        if self._kind == "s":
            value = self._shared[int(value)]
        elif self._kind == "b":
            value = "TRUE" if value == "1" else "FALSE"
        elif self._kind == "n":
            known = self._style < len(self._formats)
            show = self._formats[self._style] if known else show_general
            # Whatever the format is, the cell may hold no number.
            with suppress(ValueError, OverflowError):
                value = show(value, self._origin)
        return " ".join(value.split("\n"))


def number_column(letters: str) -> int:
    number = 0
    for letter in letters[:3]:
        number = number * 26 + ord(letter) - 64
    return number


def read_xlsx(parts: Parts, text: Text) -> None:
    main, shared, formats = find_main(parts), [], []
    origin, hidden = _read_workbook(parts, main)
    for kind, path in parts.read_relations(main).values():
        if kind == "sharedStrings" and path in parts:
            # Cells refer to these texts by number.
            pass_on_texts(parts.read(path), "si", lambda _, said: shared.append(said))
        elif kind == "styles" and path in parts:
            formats = read_formats(parts, path)
    for name, path in list_ids(parts, main, "sheet"):
        text.begin_part(f"{name} (hidden)" if name in hidden else name)
        sheet = SheetText(text, shared, formats, origin)
        parse_into(sheet, parts.read(path))
        for words, kind in sheet.headers.items():
            text.add_text(f"{kind}: {words}\n" * bool(words))
        _read_beside(parts, path, text)


def _read_workbook(parts: Parts, main: str) -> tuple[datetime, set[str]]:
    """Return the first day of the date system and the names of hidden sheets."""
    origin, hidden = datetime(1899, 12, 30), set()
    for tag, each in list_elements(parts.read(main), "workbookPr", "sheet"):
        if tag == "workbookPr" and each.get("date1904") in ("1", "true"):
            origin = datetime(1904, 1, 1)
        elif tag == "sheet" and each.get("state", "visible") != "visible":
            hidden.add(each.get("name", ""))
    return origin, hidden


def _read_beside(parts: Parts, path: str, text: Text) -> None:
    """Comments on a sheet, and what is drawn on it."""
    for kind, target in parts.read_relations(path).values():
        if target not in parts:
            continue
        if kind == "comments":
            pass_on_texts(parts.read(target), "comment", partial(_add_comment, text))
        elif kind == "drawing":
            part = text.begin_beside()
            OfficeText.read(parts, target, part)
            said = "".join(part.parts).strip()
            text.add_text(f"\n{said}\n" * bool(said))
            read_drawn(parts, target, text, OfficeText.read)


def _add_comment(text: Text, comment: dict[str, str], said: str) -> None:
    words = " ".join(f"{comment.get('ref', '')}: {said}".split())
    text.add_text(f"Comment {words}\n")
