"""The parts of a zipped document, and the text that is read from them.

It knows no Django: it runs in the program of document_text.py.
"""

import posixpath
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any
from urllib.parse import unquote
from xml.parsers import expat

# Of all parts together, unpacked: a page of a book has 3 kB, a sheet of numbers 20 MB.
MAX_UNPACKED = 96 * 1024 * 1024
MAX_PARTS = 20_000
# Elements inside of each other: tables in tables in boxes have some dozens.
MAX_DEPTH = 500


class UnreadableError(Exception):
    """A document that cannot be read; its message is the code of a sentence."""


class Text:
    """The text read so far, of at most `chars` characters."""

    def __init__(self, chars: int) -> None:
        self.parts: list[str] = []
        # The number of things of each kind without text.
        self.left_out: Counter[str] = Counter()
        self._counted: set[str] = set()
        self._left = chars

    def add_text(self, part: str) -> None:
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
            self.add_text("\n")

    def end_cell(self) -> None:
        if self.parts and self.parts[-1] == " ":
            self.parts.pop()
        self.add_text("\t")

    def begin_beside(self) -> "Text":
        """Return an empty text with the same limits, to be added if it is wanted."""
        part = Text(self._left)
        part.left_out, part._counted = self.left_out, self._counted
        return part

    def leave_out(self, kind: str, target: str) -> None:
        """Count a picture, or another thing without text, that several parts name."""
        self.left_out[kind] += target not in self._counted
        self._counted.add(target)

    def begin_part(self, title: str) -> None:
        self.end_line()
        self.add_text(f"\n## {title}\n\n" if self.parts else f"## {title}\n\n")


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
        # The declared size of a part is not trusted.
        with self._archive.open(part) as file:
            data = file.read(self._left + 1)
        self._left -= len(data)
        if self._left < 0:
            raise UnreadableError("too_complex")
        return data

    def read_relations(self, path: str) -> dict[str, tuple[str, str]]:
        """Return {id: (last word of the kind, path)} of the parts named here."""
        folder, name = posixpath.split(path)
        relations = f"{folder}/_rels/{name}.rels".lstrip("/")
        if relations not in self:
            return {}
        found: dict[str, tuple[str, str]] = {}
        for _, each in list_elements(self.read(relations), "Relationship"):
            if each.get("TargetMode") != "External":
                target = posixpath.join("/", folder, unquote(each["Target"]))
                kind = each["Type"].rpartition("/")[2]
                found[each["Id"]] = kind, posixpath.normpath(target)[1:]
        return found


def parse_xml(
    data: bytes,
    start: Callable[[str, dict[str, str]], None],
    end: Callable[[str], None] = lambda tag: None,
    text: Callable[[str], None] = lambda said: None,
) -> None:
    """Parse XML and pass on elements and attributes without their namespaces.

    A document type is refused: only that can define entities, which could name files
    and addresses or grow.
    """
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    depth = 0

    def start_element(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            raise UnreadableError("too_complex")
        short = {key.rpartition(" ")[2]: value for key, value in attributes.items()}
        start(name.rpartition(" ")[2], short)

    def end_element(name: str) -> None:
        nonlocal depth
        depth -= 1
        end(name.rpartition(" ")[2])

    def refuse(*_: object) -> None:
        raise UnreadableError("broken")

    parser.StartElementHandler = start_element
    parser.EndElementHandler = end_element
    parser.CharacterDataHandler = text
    parser.StartDoctypeDeclHandler = refuse
    parser.Parse(data, True)


def list_elements(data: bytes, *tags: str) -> list[tuple[str, dict[str, str]]]:
    """Return the elements with one of these tags, each with its attributes."""
    found: list[tuple[str, dict[str, str]]] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag in tags:
            found.append((tag, attributes))

    parse_xml(data, start)
    return found


def parse_into(reader: Any, data: bytes) -> None:
    """Parse XML and pass its elements and characters to a reader's methods."""
    parse_xml(data, reader.start_element, reader.end_element, reader.add_characters)


def find_main(parts: Parts) -> str:
    for kind, path in parts.read_relations("").values():
        if kind == "officeDocument" and path in parts:
            return path
    raise UnreadableError("wrong_kind")


def list_ids(parts: Parts, path: str, tag: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the path of each part that elements of this tag list."""
    relations = parts.read_relations(path)
    for _, each in list_elements(parts.read(path), tag):
        # The id of the relation has the name of the element's own, which is a number.
        _, target = relations.get(each.get("id", ""), ("", ""))
        if target in parts:
            yield each.get("name", ""), target
