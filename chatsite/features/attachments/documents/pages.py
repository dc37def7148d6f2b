"""The text of web pages, books and letters.

It knows no Django: it runs in the program of document_text.py.
"""

import email
import posixpath
import re
from collections.abc import Iterator
from email import policy
from html import unescape
from urllib.parse import unquote

import nh3

from ..encodings import decode_page
from .parts import Parts, Text, UnreadableError, list_elements

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


class PageTextWriter:
    """The text of a clean web page, which has tags of KEPT without attributes."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._is_plain = False

    def write_page(self, page: str) -> None:
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
            self._text.add_text("- ")
        elif re.fullmatch("h[1-6]", tag):
            self._text.add_text("#" * int(tag[1]) + " ")
        elif tag == "br":
            self._text.add_text("\n")
        elif tag in ("td", "th") and not self._text.is_at_line():
            self._text.add_text("\t")

    def _say(self, said: str) -> None:
        if self._is_plain:
            self._text.add_text(said)
        elif said and (words := " ".join(said.split())):
            before = said[0].isspace() and not self._text.is_at_word()
            self._text.add_text(" " * before + words + " " * said[-1].isspace())


def read_web_page(data: bytes, text: Text, charset: str = "") -> None:
    page = decode_page(data, charset)
    if b"<?xml" in data[:1024] or b"xmlns" in data[:1024]:
        page = EMPTY.sub("", page)
    # A parser of browsers: it takes linear time, and understands whatever is wrong.
    clean = nh3.clean(page, tags=KEPT, clean_content_tags=NO_TEXT, attributes={})
    PageTextWriter(text).write_page(clean)
    text.end_line()


def find_title(page: str) -> str:
    found = re.search(
        r"<title\b[^<>]{0,200}>([^<]{1,1000})", page[:HEAD], re.IGNORECASE
    )
    return " ".join(unescape(found[1]).split()) if found else ""


# The beginning of a page that has its title.
HEAD = 100_000


def read_epub(parts: Parts, text: Text) -> None:
    if "META-INF/container.xml" not in parts:
        raise UnreadableError("wrong_kind")
    if "META-INF/rights.xml" in parts:
        raise UnreadableError("encrypted")
    for path in list_chapters(parts):
        read_web_page(parts.read(path), text)
        text.add_text("\n")


def list_chapters(parts: Parts) -> Iterator[str]:
    """Yield the paths of the pages of a book, in the order of its spine."""
    roots = list_elements(parts.read("META-INF/container.xml"), "rootfile")
    package = roots[0][1]["full-path"]
    items: dict[str, str] = {}
    spine: dict[str, None] = {}
    for tag, each in list_elements(parts.read(package), "item", "itemref"):
        if tag == "item":
            items[each["id"]] = unquote(each["href"])
        else:
            spine[each["idref"]] = None
    folder = posixpath.dirname(package)
    for name in spine:
        path = posixpath.normpath(posixpath.join(folder, items.get(name, "")))
        if path in parts:
            yield path


def read_eml(data: bytes, text: Text) -> None:
    letter = email.message_from_bytes(data, policy=policy.default)
    said = [f"{name}: {letter[name]}" for name in HEADERS if letter[name]]
    if len(said) < 2:
        raise UnreadableError("wrong_kind")
    text.add_text("\n".join(said) + "\n\n")
    body = letter.get_body(("plain", "html"))
    if body:
        content = body.get_payload(decode=True) or b""
        charset = body.get_content_charset("")
        if body.get_content_subtype() == "html":
            read_web_page(content, text, charset)
        else:
            text.add_text(decode_page(content, charset))
    for part in letter.iter_attachments():
        text.end_line()
        text.add_text(
            f"\nAttachment: {part.get_filename() or part.get_content_type()}\n"
        )


HEADERS = ("From", "To", "Cc", "Date", "Subject")
