"""The text or the image in an uploaded file, or a reason why there is none."""

import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from io import BytesIO
from typing import IO, Any, NamedTuple

from asgiref.sync import sync_to_async
from django.conf import settings
from django.utils.translation import gettext as _

from chatsite.ops.processor_time import account_of_user
from memory.engine.attachments import describe_image
from memory.engine.blank import is_blank
from memory.engine.file_names import clean_file_name, find_file_kind
from memory.transcript import WHOLE_CHARS

from . import encodings, pdf, processes
from .documents.reading import (
    PAGES,
    PageText,
    check_document_kind,
    describe_left_out,
    make_refusal,
    read_document_file,
    read_fetched_page,
)
from .encodings import AT_ONCE
from .errors import FileError, UnsureError
from .images.reading import ReadImage, check_image_kind, read_image
from .processes import Leave

PDF = b"%PDF-"
# A PDF may have other bytes before its mark.
PDF_HEAD = 1_024
# Kinds of files that are no text, by how they begin, and what to do with them.
SIGNATURES = (
    b"PK\x03\x04",  # zip
    b"PK\x05\x06",
    b"\x1f\x8b",  # gzip
    b"BZh",
    b"7z\xbc\xaf\x27\x1c",
    b"Rar!",
    b"\xfd7zXZ",
    b"\x28\xb5\x2f\xfd",  # zstandard
    b"\xd0\xcf\x11\xe0",  # doc, xls
    b"\x89PNG",
    b"\xff\xd8\xff",  # jpeg
    b"GIF8",
    b"RIFF",
    b"\x7fELF",
    b"MZ\x90",
    b"{\\rtf",
)
# Control characters that texts have: tab, line ends, form feed, escape of terminals.
CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
MOST_CONTROL = 0.01
# A question about a file keeps the file: the letters of a longer one are enough.
MOST_ASKED_BYTES = 1_000_000


class ReadFile(NamedTuple):
    """A file as text: its cleaned name, its kind, its size in bytes.

    The text of an image names it. `pages`: the start of each page in the text, if it
    has any. `encoding`: the name of the encoding, unless it is UTF-8. `left_out`: the
    parts without text, in words.
    """

    name: str
    kind: str
    size: int
    text: str
    image: ReadImage | None = None
    pages: Sequence[int] = ()
    encoding: str = ""
    left_out: str = ""


class ReadingHints(NamedTuple):
    """The hints of a user: the `languages` they read, and a chosen `encoding`."""

    languages: Sequence[str] = ()
    encoding: str = ""


NO_HINTS = ReadingHints()


async def hold_nothing() -> None:
    """Release nothing: the `leave` of a caller that holds nothing others wait for."""


async def read_file(
    user_id: int,
    name: str,
    file: IO[bytes],
    size: int,
    leave: Leave = hold_nothing,
    *,
    chars: int = WHOLE_CHARS,
    hints: ReadingHints = NO_HINTS,
) -> ReadFile:
    """Return the file as text, of up to `chars` characters.

    `leave`: see processes.await_turn(). Raises FileError, and UnsureError if its
    encoding is in doubt.
    """
    check_file_size(size)
    shown = clean_file_name(name)
    kind = find_file_kind(shown)
    head = file.read(PDF_HEAD)
    file.seek(0)
    is_pdf = PDF in head if kind == "pdf" else head.startswith(PDF)
    if (kind == "pdf") != is_pdf:
        raise make_refusal("wrong_kind", shown)
    if check_image_kind(shown, kind, head):
        read = await read_image(user_id, file, leave)
        size = len(read.data)
        text = describe_image(shown, read.image, size)
        return ReadFile(shown, kind, size, text, read)
    pages: list[int] = []
    left_out: dict[str, int] = {}
    encoding = ""
    if is_pdf:
        more = {"pages": pages, "left_out": left_out}
        text = await pdf.read_pdf(user_id, file, leave, chars=chars, **more)
    elif check_document_kind(shown, kind, head):
        text = await read_document_file(
            user_id, shown, kind, file, leave, chars, left_out
        )
    else:
        read_text = partial(_read_text, user_id, shown, kind, file, leave, chars)
        if size <= WHOLE_CHARS:
            text, encoding = await read_text(hints)
        else:
            # Few at a time hold a text that can be long.
            async with processes.keep_turn(), processes.await_turn(user_id, leave):
                text, encoding = await read_text(hints)
    # A long one of nothing to see takes its time.
    text = await _in_thread(user_id, check_file_text)(text, chars)
    said = describe_left_out(left_out)
    return ReadFile(shown, kind, size, text, None, pages, encoding, said)


def _in_thread(user_id: int, work: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """Wrap work to run in a thread of its own, as processor time of the user."""

    def work_timed(*values: Any) -> Any:
        with account_of_user(user_id).timed():
            return work(*values)

    # Not asyncio.to_thread(), in which the language of the request is lost.
    return sync_to_async(work_timed, thread_sensitive=False)


# Media types of documents, and the endings of such files.
DOCUMENTS = {
    "application/pdf": "pdf",
    "application/epub+zip": "epub",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
    "application/vnd.oasis.opendocument.text": "odt",
    "application/vnd.oasis.opendocument.spreadsheet": "ods",
    "application/vnd.oasis.opendocument.presentation": "odp",
    "text/html": "html",
    "application/xhtml+xml": "html",
}
TEXTS = re.compile(
    r"text/.*|application/(?:.*\+)?(?:json|xml)|application/octet-stream"
)
PAGE = re.compile(rb"<!doctype html|<html\b", re.IGNORECASE)


async def read_fetched(
    user_id: int, media_type: str, charset: str, data: bytes
) -> PageText:
    """Return the text of a file that was fetched from the web. Raises FileError."""
    kind = DOCUMENTS.get(media_type, "")
    if data.startswith(PDF):
        kind = "pdf"
    elif not kind and TEXTS.fullmatch(media_type):
        kind = "html" if PAGE.search(data, 0, PDF_HEAD) else "txt"
    if kind == "html":
        return await read_fetched_page(user_id, charset, data, hold_nothing)
    if kind == "txt":
        decode = _in_thread(user_id, _decode_fetched)
        return PageText(check_file_text(await decode(data, charset)))
    if not kind:
        raise _refuse_binary()
    name, file = f"page.{kind}", BytesIO(data)
    return PageText((await read_file(user_id, name, file, len(data))).text)


def _decode_fetched(data: bytes, charset: str) -> str:
    """Decode a text of the web, whose encoding no user can choose."""
    if data.startswith(SIGNATURES):
        raise _refuse_binary()
    return _check_controls(encodings.decode_page(data, charset))


async def _read_text(
    user_id: int,
    name: str,
    kind: str,
    file: IO[bytes],
    leave: Leave,
    chars: int,
    hints: ReadingHints,
) -> tuple[str, str]:
    """Return the text of a file and the name of its encoding.

    An e-mail is returned decoded, any other file as it is. Of a web page that is too
    long with its markup, as browsers save pages, only the text is returned.
    """
    if kind == "eml":
        try:
            return await read_document_file(user_id, name, kind, file, leave, chars), ""
        except FileError as error:
            if error.code not in ("wrong_kind", "no_text", "broken"):
                raise
            file.seek(0)
    decode = _in_thread(user_id, decode_text)
    try:
        return await decode(file.read(), chars, hints)
    except FileError as error:
        if error.code != "too_long" or kind not in PAGES:
            raise
    file.seek(0)
    return await read_document_file(user_id, name, "html", file, leave, chars), ""


def check_file_size(size: int) -> None:
    limit = settings.ATTACHMENT_MAX_MB
    if size > limit * 1024 * 1024:
        words = _(
            "The file has %(size)s MB; the limit is %(limit)s MB. Attach only the "
            "part that matters."
        )
        raise FileError(
            "too_large", words % {"size": f"{size / 1024 / 1024:.1f}", "limit": limit}
        )


def check_file_text(text: str, chars: int = WHOLE_CHARS) -> str:
    """Return the text. Raises FileError unless it can be attached as it is."""
    if is_blank(text):
        raise FileError("empty", _("The file is empty. Attach one with text."))
    return _check_length(text, chars)


def _check_length(text: str, chars: int) -> str:
    if len(text) > chars:
        words = _(
            "The file has %(count)s characters; the limit is %(limit)s. Attach "
            "only the part that matters."
        )
        raise FileError(
            "too_long", words % {"count": f"{len(text):,}", "limit": f"{chars:,}"}
        )
    return text


def decode_text(
    data: bytes, chars: int = WHOLE_CHARS, hints: ReadingHints = NO_HINTS
) -> tuple[str, str]:
    """Return the text of up to `chars` characters, and its encoding unless it is UTF-8.

    Only a byte order mark is removed. Raises FileError, and UnsureError if the text may
    be in one of several encodings.
    """
    if data.startswith(SIGNATURES):
        raise _refuse_binary()
    marked = encodings.find_marked(data)
    found = [hints.encoding or marked or "utf-8"]
    if not hints.encoding and not marked:
        found = encodings.find_encodings(data, hints.languages)
    if len(found) > 1 and len(data) <= MOST_ASKED_BYTES:
        raise UnsureError([encodings.make_reading(data, each) for each in found])
    text = encodings.decode(data, found[0]) if len(found) == 1 else None
    if text is None:
        raise _refuse_binary() if b"\0" in data else _refuse_encoding()
    # Before it is looked through.
    _check_length(text, chars)
    is_said = found[0] != "utf-8" and not marked
    return _check_controls(text), encodings.name_codec(found[0]) if is_said else ""


def _check_controls(text: str) -> str:
    starts = range(0, len(text), AT_ONCE)
    control = sum(len(CONTROL.findall(text, at, at + AT_ONCE)) for at in starts)
    if "\0" in text or control > MOST_CONTROL * len(text):
        raise _refuse_binary()
    return text


def _refuse_binary() -> FileError:
    words = _(
        "This site can't read this kind of file. Text, code, PDF, Word (docx), "
        "Excel (xlsx), PowerPoint (pptx), OpenDocument (odt, ods, odp), EPUB, "
        "e-mail (eml) and images (PNG, JPEG, WebP, GIF) can be attached; save or "
        "export it as one of these, or paste its text."
    )
    return FileError("not_text", words)


def _refuse_encoding() -> FileError:
    words = _(
        "The text of this file can't be read: it is neither UTF-8 nor another "
        "encoding that this site knows. Save it as UTF-8 and attach it again."
    )
    return FileError("wrong_encoding", words)
