"""The text of OpenDocument texts, spreadsheets and presentations.

LibreOffice and others save them. It knows no Django: it runs in the program of
document_text.py.
"""

from collections.abc import Callable

from .parts import Parts, Text, UnreadableError, parse_into

MAIN, TYPE, MANIFEST = "content.xml", "mimetype", "META-INF/manifest.xml"
TYPES = {
    "odt": b"application/vnd.oasis.opendocument.text",
    "ods": b"application/vnd.oasis.opendocument.spreadsheet",
    "odp": b"application/vnd.oasis.opendocument.presentation",
}
# What was deleted, what is no text of the document, marks and authors of notes, and
# numbers of pages, which are others wherever the text is read.
SKIPPED = {
    *("tracked-changes", "forms", "scripts", "note-citation", "creator"),
    *("page-number", "page-count"),
}
# Things without text, by their element.
LEFT_OUT = {"image": "picture", "object": "file", "object-ole": "file"}
PARAGRAPHS, NOTES = ("p", "h"), ("note-body", "annotation")
CELLS = ("table-cell", "covered-table-cell")
# A sheet is filled up with empty cells and rows: of what repeats, so much is written.
MOST_REPEATED = 1_000


def read_opendocument(kind: str, parts: Parts, text: Text) -> None:
    if TYPE in parts and parts.read(TYPE).strip() != TYPES[kind]:
        raise UnreadableError("wrong_kind")
    if MANIFEST in parts and b"encryption-data" in parts.read(MANIFEST):
        raise UnreadableError("encrypted")
    if MAIN not in parts:
        raise UnreadableError("wrong_kind")
    reader = OpenDocumentText(text)
    parse_into(reader, parts.read(MAIN))


class OpenDocumentText:
    """The text of a document, built from its elements as they come.

    Cells are collected: an empty one counts only before one with text.
    """

    def __init__(self, text: Text) -> None:
        self._text = text
        self._skipping = self._depth = self._notes = 0
        # The cells of each row that is open, of tables inside of each other, and how
        # often a row and a cell come.
        self._rows: list[list[str]] = []
        self._repeats: list[int] = []
        self._cell: list[list[str]] = []
        self._starts: dict[str, Callable[[dict[str, str]], None]] = {
            **dict.fromkeys(PARAGRAPHS, self._begin_paragraph),
            **dict.fromkeys(NOTES, self._begin_note),
            **dict.fromkeys(CELLS, self._begin_cell),
            "table-row": self._begin_row,
            "page": lambda found: self._begin_part(found.get("name") or "Slide"),
            "table": lambda found: self._begin_part(found.get("name", "")),
            "s": lambda found: self._add(
                " " * min(_read_count(found, "c"), MOST_REPEATED)
            ),
            "tab": lambda _: self._add(" " if self._cell else "\t"),
            "line-break": lambda _: self._add(" " if self._cell else "\n"),
            "list-item": lambda _: self._add("- "),
        }
        self._ends: dict[str, Callable[[], None]] = {
            **dict.fromkeys(PARAGRAPHS, self._end_paragraph),
            **dict.fromkeys(NOTES, self._end_note),
            **dict.fromkeys(CELLS, self._end_cell),
            "table-row": self._end_row,
        }

    def start_element(self, tag: str, attributes: dict[str, str]) -> None:
        is_of_note = self._notes and tag == "date"
        if self._skipping or tag in SKIPPED or is_of_note:
            self._skipping += 1
        elif tag in self._starts:
            self._starts[tag](attributes)
        elif tag in LEFT_OUT:
            self._text.leave_out(LEFT_OUT[tag], attributes.get("href", ""))

    def add_characters(self, said: str) -> None:
        if self._depth and not self._skipping:
            # Ends of lines in the file are spaces.
            self._add(said.replace("\n", " "))

    def end_element(self, tag: str) -> None:
        if self._skipping:
            self._skipping -= 1
        elif tag in self._ends:
            self._ends[tag]()

    def _add(self, said: str) -> None:
        if said and self._cell:
            self._cell[-1].append(said)
        elif said:
            self._text.add_text(said)

    def _begin_part(self, name: str) -> None:
        if name and not self._rows:
            self._text.begin_part(name)

    def _begin_paragraph(self, _: dict[str, str]) -> None:
        self._depth += 1
        if self._cell and self._cell[-1]:
            self._add(" ")

    def _end_paragraph(self) -> None:
        self._depth -= 1
        if not (self._cell or self._notes):
            self._text.end_line()

    def _begin_note(self, _: dict[str, str]) -> None:
        self._notes += 1
        self._add(" [")

    def _end_note(self) -> None:
        self._notes -= 1
        self._add("]")

    def _begin_row(self, attributes: dict[str, str]) -> None:
        self._rows.append([])
        self._repeats.append(_read_count(attributes, "number-rows-repeated"))

    def _begin_cell(self, attributes: dict[str, str]) -> None:
        self._cell.append([])
        self._repeats.append(_read_count(attributes, "number-columns-repeated"))

    def _end_cell(self) -> None:
        said = "".join(self._cell.pop()).strip()
        self._rows[-1].extend([said] * self._end_repeated("cell", said))

    def _end_row(self) -> None:
        cells = self._rows.pop()
        while cells and not cells[-1]:
            cells.pop()
        count = self._end_repeated("row", cells)
        if self._cell:
            # A table in a cell is words of that cell.
            self._add(" ".join([*cells, ""]))
        elif cells:
            for _ in range(count):
                self._text.add_text("\t".join(cells) + "\n")

    def _end_repeated(self, kind: str, content: object) -> int:
        """Return how often to write it; the rest is counted where it has a text."""
        count = self._repeats.pop()
        if content:
            self._text.left_out[kind] += max(0, count - MOST_REPEATED)
        return min(count, MOST_REPEATED)


def _read_count(attributes: dict[str, str], name: str) -> int:
    return max(1, int(attributes.get(name, "1")))
