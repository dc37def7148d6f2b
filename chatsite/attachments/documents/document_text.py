"""The text of a document: a program of its own, started by reading.py, that takes the
file on standard input and answers with JSON on standard output.

It has no environment, no database and no settings. Only parts with text are unpacked,
and none of them is a file on a disk; what is embedded is never opened, and nothing is
fetched.
"""

import email
import json
import posixpath
import re
import sys
import zipfile
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from email import policy
from html import unescape
from io import BytesIO
from urllib.parse import unquote
from xml.parsers import expat

import nh3

from chatsite.attachments.encodings import decode_page

# Of all parts together, unpacked: a page of a book has 3 kB, a sheet of numbers 20 MB.
MAX_UNPACKED = 96 * 1024 * 1024
MAX_PARTS = 20_000
# What an unreadable file raises in the standard library is not limited to its errors.
BROKEN = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, OSError, TypeError),
    *(ValueError, NotImplementedError, expat.ExpatError, zipfile.BadZipFile),
)
# Empty columns between two cells that are shown as such.
MAX_GAP = 50


class UnreadableError(Exception):
    """With the code of a sentence for people."""


class Text:
    """What was read so far, of at most `chars` characters."""

    def __init__(self, chars: int) -> None:
        self.parts: list[str] = []
        self._left = chars

    def add(self, part: str) -> None:
        self._left -= len(part)
        if self._left < 0:
            self.parts.append(part[: self._left])
            raise UnreadableError("too_long")
        self.parts.append(part)

    def is_at_line(self) -> bool:
        return not self.parts or self.parts[-1].endswith("\n")

    def is_at_word(self) -> bool:
        return not self.parts or self.parts[-1].endswith((" ", "\n", "\t"))

    def end_line(self) -> None:
        if not self.is_at_line():
            self.add("\n")

    def end_cell(self) -> None:
        if self.parts and self.parts[-1] == " ":
            self.parts.pop()
        self.add("\t")

    def begin_part(self, title: str) -> None:
        self.end_line()
        self.add(f"\n## {title}\n\n" if self.parts else f"## {title}\n\n")


class Parts:
    """The parts of a zipped document, by their paths."""

    def __init__(self, data: bytes) -> None:
        self._archive = zipfile.ZipFile(BytesIO(data))
        found = self._archive.infolist()
        if len(found) > MAX_PARTS:
            raise UnreadableError("too_complex")
        self._found = {each.filename: each for each in found}
        self._left = MAX_UNPACKED

    def __contains__(self, path: str) -> bool:
        return path in self._found

    def read(self, path: str) -> bytes:
        part = self._found[path]
        if part.flag_bits & 1:
            raise UnreadableError("encrypted")
        if part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise UnreadableError("broken")
        # What a part says of its own size is not believed.
        with self._archive.open(part) as file:
            data = file.read(self._left + 1)
        self._left -= len(data)
        if self._left < 0:
            raise UnreadableError("too_complex")
        return data

    def read_relations(self, path: str) -> dict[str, tuple[str, str]]:
        """The last word of the kind, and the path, of what a part names by ids."""
        folder, name = posixpath.split(path)
        found: dict[str, tuple[str, str]] = {}

        def start(tag: str, attributes: dict[str, str]) -> None:
            if tag == "Relationship" and attributes.get("TargetMode") != "External":
                target = posixpath.join("/", folder, unquote(attributes["Target"]))
                kind = attributes["Type"].rpartition("/")[2]
                found[attributes["Id"]] = kind, posixpath.normpath(target)[1:]

        relations = f"{folder}/_rels/{name}.rels".lstrip("/")
        if relations in self:
            parse_xml(self.read(relations), start)
        return found


def parse_xml(
    data: bytes,
    start: Callable[[str, dict[str, str]], None],
    end: Callable[[str], None] = lambda tag: None,
    text: Callable[[str], None] = lambda said: None,
) -> None:
    """Elements and attributes without their namespaces. A document type is refused:
    only that can define entities, which would name files and addresses or grow."""
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True

    def start_element(name: str, attributes: dict[str, str]) -> None:
        short = {key.rpartition(" ")[2]: value for key, value in attributes.items()}
        start(name.rpartition(" ")[2], short)

    def refuse(*_: object) -> None:
        raise UnreadableError("broken")

    parser.StartElementHandler = start_element
    parser.EndElementHandler = lambda name: end(name.rpartition(" ")[2])
    parser.CharacterDataHandler = text
    parser.StartDoctypeDeclHandler = refuse
    parser.Parse(data, True)


class OfficeText:
    """The text of a part of Word or PowerPoint, as elements come."""

    # A second form of the same, and what was only ever a number of the page.
    SKIPPED = {"Fallback", "instrText", "delText"}

    def __init__(self, text: Text) -> None:
        self._text = text
        self._skipping = self._said = self._cells = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        is_number = tag == "fld" and attributes.get("type") == "slidenum"
        if self._skipping or tag in self.SKIPPED or is_number:
            self._skipping += 1
        elif tag == "t":
            self._said += 1
        elif tag == "tab" and not attributes:
            self._text.add("\t")
        elif tag in ("br", "cr"):
            self._text.add(" " if self._cells else "\n")
        elif tag == "tc":
            self._cells += 1
        elif tag == "pStyle":
            self._begin_paragraph(attributes.get("val", ""))
        elif tag == "numPr":
            self._text.add("- ")

    def _begin_paragraph(self, style: str) -> None:
        heading = re.fullmatch(r"Heading ?([1-6])", style)
        if heading:
            self._text.add("#" * int(heading[1]) + " ")
        elif style.startswith(("ListBullet", "ListNumber")):
            self._text.add("- ")

    def end(self, tag: str) -> None:
        if self._skipping:
            self._skipping -= 1
        elif tag == "t":
            self._said -= 1
        elif tag == "p":
            self._text.add(" " if self._cells else "\n")
        elif tag == "tc":
            self._cells -= 1
            self._text.end_cell()
        elif tag == "tr":
            self._text.add("\n")

    def say(self, said: str) -> None:
        if self._said and not self._skipping:
            self._text.add(said)

    @classmethod
    def read(cls, parts: Parts, path: str, text: Text) -> None:
        reader = cls(text)
        parse_xml(parts.read(path), reader.start, reader.end, reader.say)


def find_main(parts: Parts) -> str:
    for kind, path in parts.read_relations("").values():
        if kind == "officeDocument" and path in parts:
            return path
    raise UnreadableError("wrong_kind")


def read_docx(parts: Parts, text: Text) -> None:
    main = find_main(parts)
    OfficeText.read(parts, main, text)
    for kind, path in parts.read_relations(main).values():
        if kind in ("footnotes", "endnotes", "comments") and path in parts:
            text.begin_part(kind.capitalize())
            OfficeText.read(parts, path, text)


def list_ids(parts: Parts, path: str, tag: str) -> Iterator[tuple[str, str]]:
    """The name and the path of what a part lists in elements of this tag."""
    relations, found = parts.read_relations(path), []

    def start(name: str, attributes: dict[str, str]) -> None:
        if name == tag:
            found.append(attributes)

    parse_xml(parts.read(path), start)
    for each in found:
        # The id of the relation has the name of the element's own, which is a number.
        _, target = relations.get(each.get("id", ""), ("", ""))
        if target in parts:
            yield each.get("name", ""), target


def read_pptx(parts: Parts, text: Text) -> None:
    slides = list_ids(parts, find_main(parts), "sldId")
    for number, (_, path) in enumerate(slides, start=1):
        text.begin_part(f"Slide {number}")
        OfficeText.read(parts, path, text)
        for kind, notes in parts.read_relations(path).values():
            if kind == "notesSlide" and notes in parts:
                text.end_line()
                text.add("\nNotes:\n")
                OfficeText.read(parts, notes, text)


# Formats of numbers that are dates and times, as every workbook has them.
DATE_FORMATS = {*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)}


def read_date_styles(parts: Parts, path: str) -> list[bool]:
    """Whether numbers are dates, by the number of their style."""
    dates, styles, inside = set(DATE_FORMATS), [], [""]

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag == "numFmt":
            # Without texts, colours and conditions.
            code = re.sub(r'"[^"]*"?|\[[^\]]*\]?|\\.', "", attributes["formatCode"])
            if re.search(r"[dmyhs]", code.lower().replace("general", "")):
                dates.add(int(attributes["numFmtId"]))
        elif tag == "cellXfs":
            inside.append(tag)
        elif tag == "xf" and inside[-1] == "cellXfs":
            styles.append(int(attributes.get("numFmtId", "0")) in dates)

    def end(tag: str) -> None:
        if tag == inside[-1]:
            inside.pop()

    parse_xml(parts.read(path), start, end)
    return styles


def read_shared(parts: Parts, path: str) -> list[str]:
    """The texts that cells name by their number."""
    found: list[str] = []
    said: list[str] = []
    # How to pronounce it stands beside it.
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
        self, text: Text, shared: list[str], dates: list[bool], origin: datetime
    ) -> None:
        self._text, self._shared, self._dates = text, shared, dates
        self._origin = origin
        self._column = self._next = 0
        self._kind, self._is_date, self._is_value = "n", False, False
        self._said: list[str] = []

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "row":
            self._column = self._next = 0
        elif tag == "c":
            letters = re.match(r"[A-Z]{1,3}", attributes.get("r", ""))
            self._next = number_column(letters[0]) if letters else self._next + 1
            self._kind = attributes.get("t", "n")
            style = int(attributes.get("s", "0"))
            self._is_date = style < len(self._dates) and self._dates[style]
        elif tag in ("v", "t"):
            self._is_value = True

    def say(self, part: str) -> None:
        if self._is_value:
            self._said.append(part)

    def end(self, tag: str) -> None:
        if tag in ("v", "t"):
            self._is_value = False
        elif tag == "c" and self._said:
            shown = self._show("".join(self._said))
            self._said.clear()
            gap = self._next - self._column - (self._column == 0)
            self._text.add("\t" * max(0, min(gap, MAX_GAP)) + shown)
            self._column = self._next
        elif tag == "row" and self._column:
            self._text.add("\n")

    def _show(self, value: str) -> str:
        if self._kind == "s":
            value = self._shared[int(value)]
        elif self._kind == "b":
            value = "TRUE" if value == "1" else "FALSE"
        elif self._kind == "n" and self._is_date:
            value = show_date(value, self._origin)
        return " ".join(value.split("\n"))


def number_column(letters: str) -> int:
    number = 0
    for letter in letters[:3]:
        number = number * 26 + ord(letter) - 64
    return number


def show_date(value: str, origin: datetime) -> str:
    try:
        days = float(value)
        at = origin + timedelta(days=days)
    except (ValueError, OverflowError):
        return value
    at = (at + timedelta(milliseconds=500)).replace(microsecond=0)
    if 0 <= days < 1:
        return f"{at:%H:%M:%S}"
    return f"{at:%Y-%m-%d}" if days == int(days) else f"{at:%Y-%m-%d %H:%M:%S}"


def read_xlsx(parts: Parts, text: Text) -> None:
    main, shared, dates = find_main(parts), [], []
    origin = datetime(1899, 12, 30)

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal origin
        if tag == "workbookPr" and attributes.get("date1904") in ("1", "true"):
            origin = datetime(1904, 1, 1)

    parse_xml(parts.read(main), start)
    for kind, path in parts.read_relations(main).values():
        if kind == "sharedStrings" and path in parts:
            shared = read_shared(parts, path)
        elif kind == "styles" and path in parts:
            dates = read_date_styles(parts, path)
    for name, path in list_ids(parts, main, "sheet"):
        text.begin_part(name)
        sheet = SheetText(text, shared, dates, origin)
        parse_xml(parts.read(path), sheet.start, sheet.end, sheet.say)


# Web pages: what begins a line of its own, what separates cells, and what is no text.
BLOCKS = {
    *("p", "div", "section", "article", "ul", "ol", "table", "tr", "blockquote", "li"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "pre", "dl", "dt", "dd", "figure", "hr"),
    *("header", "footer", "main", "nav", "aside", "form"),
}
KEPT = BLOCKS | {"br", "td", "th"}
NO_TEXT = {"script", "style", "template", "noscript", "svg", "title"}
# In XHTML these need no end; read as HTML, they would have all that follows inside.
EMPTY = re.compile(rf"<(?:{'|'.join(sorted(NO_TEXT))}|a|textarea)\b[^<>]*/>")


class PageText:
    """The text of a clean web page, which has tags of KEPT without attributes."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._is_plain = False

    def read(self, page: str) -> None:
        for number, piece in enumerate(re.split("<([^<>]*)>", page)):
            if number % 2:
                self._take_tag(piece)
            else:
                self._say(unescape(piece))

    def _take_tag(self, tag: str) -> None:
        name = tag.lstrip("/")
        if name in BLOCKS:
            self._text.end_line()
        if name == "pre":
            self._is_plain = tag == name
        elif tag == "li":
            self._text.add("- ")
        elif re.fullmatch("h[1-6]", tag):
            self._text.add("#" * int(tag[1]) + " ")
        elif tag == "br":
            self._text.add("\n")
        elif tag in ("td", "th") and not self._text.is_at_line():
            self._text.add("\t")

    def _say(self, said: str) -> None:
        if self._is_plain:
            self._text.add(said)
        elif said and (words := " ".join(said.split())):
            before = said[0].isspace() and not self._text.is_at_word()
            self._text.add(" " * before + words + " " * said[-1].isspace())


def read_web_page(data: bytes, text: Text, charset: str = "") -> None:
    page = decode_page(data, charset)
    if b"<?xml" in data[:1024] or b"xmlns" in data[:1024]:
        page = EMPTY.sub("", page)
    # A parser of browsers: it takes linear time, and understands whatever is wrong.
    clean = nh3.clean(page, tags=KEPT, clean_content_tags=NO_TEXT, attributes={})
    PageText(text).read(clean)
    text.end_line()


def find_title(page: str) -> str:
    found = re.search(
        r"<title\b[^<>]{0,200}>([^<]{1,1000})", page[:HEAD], re.IGNORECASE
    )
    return " ".join(unescape(found[1]).split()) if found else ""


# Of a page, where its title is.
HEAD = 100_000


def read_epub(parts: Parts, text: Text) -> None:
    if "META-INF/container.xml" not in parts:
        raise UnreadableError("wrong_kind")
    if "META-INF/rights.xml" in parts:
        raise UnreadableError("encrypted")
    for path in list_chapters(parts):
        read_web_page(parts.read(path), text)
        text.add("\n")


def list_chapters(parts: Parts) -> Iterator[str]:
    """The paths of the pages of a book, in the order of its spine."""
    packages: list[str] = []
    items: dict[str, str] = {}
    spine: dict[str, None] = {}

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag == "rootfile":
            packages.append(attributes["full-path"])
        elif tag == "item":
            items[attributes["id"]] = unquote(attributes["href"])
        elif tag == "itemref":
            spine[attributes["idref"]] = None

    parse_xml(parts.read("META-INF/container.xml"), start)
    parse_xml(parts.read(packages[0]), start)
    folder = posixpath.dirname(packages[0])
    for name in spine:
        path = posixpath.normpath(posixpath.join(folder, items.get(name, "")))
        if path in parts:
            yield path


def read_eml(data: bytes, text: Text) -> None:
    letter = email.message_from_bytes(data, policy=policy.default)
    said = [f"{name}: {letter[name]}" for name in HEADERS if letter[name]]
    if len(said) < 2:
        raise UnreadableError("wrong_kind")
    text.add("\n".join(said) + "\n\n")
    body = letter.get_body(("plain", "html"))
    if body:
        content = body.get_payload(decode=True) or b""
        charset = body.get_content_charset("")
        if body.get_content_subtype() == "html":
            read_web_page(content, text, charset)
        else:
            text.add(decode_page(content, charset))
    for part in letter.iter_attachments():
        text.end_line()
        text.add(f"\nAttachment: {part.get_filename() or part.get_content_type()}\n")


HEADERS = ("From", "To", "Cc", "Date", "Subject")


ZIPPED = {"docx": read_docx, "xlsx": read_xlsx, "pptx": read_pptx, "epub": read_epub}
PLAIN = {"html": read_web_page, "eml": read_eml}
FETCHED = "page"


def extract_text(
    kind: str, data: bytes, chars: int, charset: str = ""
) -> dict[str, object]:
    """The text, or a code for why there is none. Of a page that was fetched from the
    web, also its title, and as much of its text as there may be."""
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
    return {"text": whole, **more} if whole.strip() else {"error": "no_text"}


if __name__ == "__main__":
    kind, chars, *charset = sys.argv[1:]
    data = sys.stdin.buffer.read()
    sys.stdout.write(json.dumps(extract_text(kind, data, int(chars), *charset)))
