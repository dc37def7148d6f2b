"""The text of Word's documents and PowerPoint's presentations.

It knows no Django: it runs in the program of document_text.py.
"""

import re
from collections.abc import Callable, Iterable

from .charts import read_drawn
from .parts import Parts, Text, find_main, list_ids, parse_into
from .symbols import find_symbol

# Elements that were deleted or moved away, or are no text.
SKIPPED = {"instrText", "delText", "del", "moveFrom", "binData"}
# Numbers of pages, which are others wherever the text is read.
PAGE_FIELDS = ("PAGE", "NUMPAGES", "SECTIONPAGES")
# Beside the text of a document, in this order.
BESIDE = {
    **{"header": "Headers", "footer": "Footers", "footnotes": "Footnotes"},
    **{"endnotes": "Endnotes", "comments": "Comments"},
}
# Elements that begin with a mark; a formula is a line here.
MARKS = {
    **{"noBreakHyphen": "-", "numPr": "- "},
    **{"sup": "^", "sub": "_", "den": "/", "deg": "√"},
}


class OfficeText:
    """The text of a part of Word or PowerPoint, as elements come."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._skipping = self._said = self._cells = 0
        # Of each choice between two forms of the same: whether one was read.
        self._chosen: list[bool] = []
        # The instruction of each field that is open; how many of them show a number
        # of a page from here on.
        self._fields: list[str] = []
        self._pages: list[int] = []
        self._is_instruction = False
        # What stands above words, to be read behind them; whether it is just read.
        self._ruby: list[str] = []
        self._is_above = False
        # Properties of a paragraph; its end was deleted, so the next one goes on in it.
        self._properties = 0
        self._goes_on = False
        self.is_hidden = False
        self._box: dict[str, str | list[str]] = {}
        self._starts: dict[str, Callable[[dict[str, str]], None]] = {
            "tab": self._add_tab,
            "pStyle": self._begin_paragraph,
            "sym": self._add_symbol,
            "fldChar": self._step_field,
            "sld": self._note_slide,
            "checkBox": lambda _: self._box.update(kind="box", value="0"),
            "ddList": lambda _: self._box.update(kind="list", value="0", entries=[]),
        }

        self._ends: dict[str, Callable[[], None]] = {
            "p": self._end_paragraph,
            "tc": self._end_cell,
            "tr": lambda: self._text.add_text("\n"),
            "rt": self._end_above,
            "ruby": self._end_ruby,
            "checkBox": self._end_box,
            "ddList": self._end_box,
        }

    def start_element(self, tag: str, attributes: dict[str, str]) -> None:
        if self._skipping or self._is_skipped(tag, attributes):
            self._is_instruction |= tag == "instrText"
            self._skipping += 1
        elif tag in self._starts:
            self._starts[tag](attributes)
        elif self._box and tag in ("checked", "default", "result", "listEntry"):
            self._note_box(tag, attributes.get("val", "1"))
        else:
            self._start_plain(tag)

    def _is_skipped(self, tag: str, attributes: dict[str, str]) -> bool:
        if self._properties and tag in ("del", "moveFrom"):
            self._goes_on = True
        if tag == "AlternateContent":
            self._chosen.append(False)
        elif tag in ("Choice", "Fallback") and self._chosen:
            is_second, self._chosen[-1] = self._chosen[-1], True
            return is_second
        is_number = tag == "fld" and attributes.get("type") == "slidenum"
        is_page = tag == "fldSimple" and _is_page_field(attributes.get("instr", ""))
        return tag in SKIPPED or is_number or is_page

    def _start_plain(self, tag: str) -> None:
        if tag in ("t", "text"):
            self._said += 1
        elif tag in ("br", "cr"):
            self._add(" " if self._cells else "\n")
        elif tag == "tc":
            self._cells += 1
        elif tag == "pPr":
            self._properties += 1
        elif tag == "rt":
            self._is_above = True
        elif tag in MARKS:
            self._add(MARKS[tag])

    def _add(self, said: str) -> None:
        if self._is_above:
            self._ruby.append(said)
        elif not self._pages:
            self._text.add_text(said)

    def _note_slide(self, attributes: dict[str, str]) -> None:
        self.is_hidden = attributes.get("show") in ("0", "false")

    def _add_tab(self, attributes: dict[str, str]) -> None:
        if not attributes:
            self._add("\t")

    def _begin_paragraph(self, attributes: dict[str, str]) -> None:
        style = attributes.get("val", "")
        heading = re.fullmatch(r"Heading ?([1-6])", style)
        if heading:
            self._add("#" * int(heading[1]) + " ")
        elif style.startswith(("ListBullet", "ListNumber")):
            self._add("- ")

    def _add_symbol(self, attributes: dict[str, str]) -> None:
        shown = find_symbol(attributes.get("font", ""), attributes.get("char", ""))
        self._text.left_out["symbol"] += not shown
        self._add(shown or "\ufffd")

    def _step_field(self, attributes: dict[str, str]) -> None:
        """Follow a field, which has its instruction first and then its result."""
        kind, depth = attributes.get("fldCharType"), len(self._fields)
        if kind == "begin":
            self._fields.append("")
        elif kind == "separate" and self._fields and _is_page_field(self._fields[-1]):
            self._pages.append(depth)
        elif kind == "end" and self._fields:
            self._fields.pop()
            if self._pages and self._pages[-1] == depth:
                self._pages.pop()

    def _note_box(self, tag: str, value: str) -> None:
        entries = self._box.get("entries")
        if tag == "listEntry" and isinstance(entries, list):
            entries.append(value)
        else:
            self._box["value"] = value

    def _end_box(self) -> None:
        if not self._box:
            return
        value, entries = str(self._box["value"]), self._box.get("entries")
        if not isinstance(entries, list):
            self._add("☐ " if value in ("0", "false", "off") else "☒ ")
        elif value.isdecimal() and int(value) < len(entries):
            self._add(entries[int(value)])
        self._box = {}

    def end_element(self, tag: str) -> None:
        if self._skipping:
            self._skipping -= 1
            self._is_instruction = False
        elif tag in ("t", "text"):
            self._said -= 1
        elif tag == "pPr":
            self._properties -= 1
        elif tag == "AlternateContent":
            self._chosen.pop()
        elif tag in self._ends:
            self._ends[tag]()

    def _end_cell(self) -> None:
        self._cells -= 1
        self._text.end_cell()

    def _end_above(self) -> None:
        self._is_above = False

    def _end_ruby(self) -> None:
        said = "".join(self._ruby)
        self._ruby.clear()
        self._text.add_text(f"({said})" * bool(said.strip()))

    def _end_paragraph(self) -> None:
        if not self._goes_on:
            self._text.add_text(" " if self._cells else "\n")
        self._goes_on = False

    def add_characters(self, said: str) -> None:
        if self._is_instruction and self._fields:
            self._fields[-1] = (self._fields[-1] + said)[:100]
        elif self._said and not self._skipping:
            self._add(said)

    @classmethod
    def read(cls, parts: Parts, path: str, text: Text) -> "OfficeText":
        reader = cls(text)
        parse_into(reader, parts.read(path))
        return reader


def _is_page_field(instruction: str) -> bool:
    return instruction.strip().partition(" ")[0].upper() in PAGE_FIELDS


def read_docx(parts: Parts, text: Text) -> None:
    main = find_main(parts)
    OfficeText.read(parts, main, text)
    beside = [*parts.read_relations(main).values()]
    for kind, title in BESIDE.items():
        read_beside(parts, title, [p for k, p in beside if k == kind], text)
    read_drawn(parts, main, text, OfficeText.read)


def read_beside(parts: Parts, title: str, paths: Iterable[str], text: Text) -> None:
    """Parts under one title, each text once: sections repeat those above them."""
    known = {""}
    for path in paths:
        if path not in parts:
            continue
        part = text.begin_beside()
        OfficeText.read(parts, path, part)
        said = "".join(part.parts).strip()
        if said not in known:
            if len(known) == 1:
                text.begin_part(title)
            text.add_text(f"{said}\n")
        known.add(said)


def read_pptx(parts: Parts, text: Text) -> None:
    slides = list_ids(parts, find_main(parts), "sldId")
    for number, (_, path) in enumerate(slides, start=1):
        part = text.begin_beside()
        is_hidden = OfficeText.read(parts, path, part).is_hidden
        text.begin_part(f"Slide {number}" + " (hidden)" * is_hidden)
        text.add_text("".join(part.parts))
        read_drawn(parts, path, text, OfficeText.read)
        for kind, beside in parts.read_relations(path).values():
            if kind in ("notesSlide", "comments") and beside in parts:
                text.end_line()
                text.add_text("\nNotes:\n" if kind == "notesSlide" else "\nComments:\n")
                OfficeText.read(parts, beside, text)
