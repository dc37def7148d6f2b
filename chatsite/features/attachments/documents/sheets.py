"""The text of Excel's workbooks.

It knows no Django: it runs in the program of document_text.py.
"""

import re
from collections.abc import Iterator
from datetime import datetime

from .charts import read_drawn
from .number_formats import Show, read_formats, show_general
from .office import OfficeText
from .parts import Parts, Text, find_main, list_ids, parse_into, parse_xml

# Empty columns between two cells that are shown as such.
MAX_GAP = 50
# Codes in the header of a sheet.
HEADER_CODES = re.compile(r'&(?:"[^"]*"|\d{1,3}|K[0-9A-F]{6}|.)')
HEADERS = re.compile(r"(?:odd|even|first)(Header|Footer)")


def read_shared(parts: Parts, path: str) -> list[str]:
    """Return the shared texts that cells refer to by number."""
    found: list[str] = []
    said: list[str] = []
    # The pronunciation is beside the text.
    state = {"t": False, "rPh": False}

    def start(tag: str, attributes: dict[str, str]) -> None:
        state[tag] = True

    def end(tag: str) -> None:
        state[tag] = False
        if tag == "si":
            found.append("".join(said))
            said.clear()

    def say(part: str) -> None:
        if state["t"] and not state["rPh"]:
            said.append(part)

    parse_xml(parts.read(path), start, end, say)
    return found


class SheetText:
    """The rows of a sheet as lines, their cells parted by tabs."""

    def __init__(
        self, text: Text, shared: list[str], formats: list[Show], origin: datetime
    ) -> None:
        self._text, self._shared, self._formats = text, shared, formats
        self._origin = origin
        self._column = self._next = 0
        self._kind, self._style = "n", 0
        self._is_value = self._is_spoken = False
        self._is_formula = self._has_formula = False
        self._said: list[str] = []
        self._formula: list[str] = []
        self.headers: dict[str, str] = {}

    def start_element(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "row":
            self._column = self._next = 0
        elif tag == "c":
            letters = re.match(r"[A-Z]{1,3}", attributes.get("r", ""))
            self._next = number_column(letters[0]) if letters else self._next + 1
            self._kind = attributes.get("t", "n")
            self._style = int(attributes.get("s", "0"))
            self._has_formula = False
        elif tag == "f":
            self._is_formula = self._has_formula = True
        elif tag == "rPh":
            self._is_spoken = True
        elif tag in ("v", "t") or HEADERS.fullmatch(tag):
            self._is_value = True

    def add_characters(self, part: str) -> None:
        if self._is_formula:
            self._formula.append(part)
        elif self._is_value and not self._is_spoken:
            self._said.append(part)

    def end_element(self, tag: str) -> None:
        if tag in ("v", "t"):
            self._is_value = False
        elif tag == "f":
            self._is_formula = False
        elif tag == "rPh":
            self._is_spoken = False
        elif tag == "c":
            self._end_cell()
        elif tag == "row" and self._column:
            self._text.add_text("\n")
        elif found := HEADERS.fullmatch(tag):
            words = HEADER_CODES.sub(" ", "".join(self._said))
            self.headers[" ".join(words.split())] = found[1]
            self._said.clear()
            self._is_value = False

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
            shared = read_shared(parts, path)
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

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal origin
        if tag == "workbookPr" and attributes.get("date1904") in ("1", "true"):
            origin = datetime(1904, 1, 1)
        elif tag == "sheet" and attributes.get("state", "visible") != "visible":
            hidden.add(attributes.get("name", ""))

    parse_xml(parts.read(main), start)
    return origin, hidden


def _read_beside(parts: Parts, path: str, text: Text) -> None:
    """Comments on a sheet, and what is drawn on it."""
    for kind, target in parts.read_relations(path).values():
        if target not in parts:
            continue
        if kind == "comments":
            for comment in _list_comments(parts, target):
                text.add_text(f"Comment {comment}\n")
        elif kind == "drawing":
            part = text.begin_beside()
            OfficeText.read(parts, target, part)
            said = "".join(part.parts).strip()
            text.add_text(f"\n{said}\n" * bool(said))
            read_drawn(parts, target, text, OfficeText.read)


def _list_comments(parts: Parts, path: str) -> Iterator[str]:
    found: list[list[str]] = []
    state = {"t": False, "rPh": False}

    def start(tag: str, attributes: dict[str, str]) -> None:
        state[tag] = True
        if tag == "comment":
            found.append([f"{attributes.get('ref', '')}: "])

    def end(tag: str) -> None:
        state[tag] = False

    def say(part: str) -> None:
        if state["t"] and not state["rPh"] and found:
            found[-1].append(part)

    parse_xml(parts.read(path), start, end, say)
    for each in found:
        yield " ".join("".join(each).split())
