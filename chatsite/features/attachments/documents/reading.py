"""The text of documents, or the reason why there is none.

A separate program with limits on time, memory and text reads them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from django.utils.translation import gettext as _
from django.utils.translation import ngettext_lazy

from memory.transcript import WHOLE_CHARS

from .. import processes
from ..errors import FileError
from ..processes import Leave

PROGRAM = Path(__file__).with_name("document_text.py")
# By the ending of their name. The others are text, too, which is what is attached where
# the program has none.
ZIPPED = ("docx", "xlsx", "pptx", "epub", "odt", "ods", "odp")
ZIP, OLD_OFFICE = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
PAGES = ("html", "htm", "xhtml")


@dataclass(frozen=True, slots=True)
class PageText:
    """The text of a web page that was fetched, or of a document at its address."""

    text: str
    title: str = ""
    is_cut: bool = False


def check_document_kind(name: str, kind: str, head: bytes) -> bool:
    """Return whether the file is a document of the kind that its name says.

    Office programs write documents with a password in their old form. Raises FileError
    if it is another kind.
    """
    if kind not in ZIPPED:
        return False
    if head.startswith(OLD_OFFICE):
        raise make_refusal("encrypted", name)
    if not head.startswith(ZIP):
        raise make_refusal("wrong_kind", name)
    return True


async def read_document_file(
    user_id: int,
    name: str,
    kind: str,
    file: IO[bytes],
    leave: Leave,
    chars: int = WHOLE_CHARS,
    left_out: dict[str, int] | None = None,
) -> str:
    """Return the text of a document, of up to `chars` characters.

    The number of things of each kind without text is added to `left_out`. The file is
    read into memory when it is its turn; `leave`: see processes.await_turn(). Raises
    FileError.
    """
    async with processes.await_turn(user_id, leave):
        answer = await processes.read_document(PROGRAM, kind, chars, data=file.read())
    if "text" not in answer:
        raise make_refusal(answer.get("error"), name, chars)
    if left_out is not None:
        left_out |= answer.get("left_out", {})
    return answer["text"]


async def read_fetched_page(
    user_id: int, charset: str, data: bytes, leave: Leave
) -> PageText:
    """Read a web page in the encoding that its server names. Raises FileError."""
    async with processes.await_turn(user_id, leave):
        answer = await processes.read_document(
            PROGRAM, "page", WHOLE_CHARS, charset, data=data
        )
    if "text" not in answer:
        raise make_refusal(answer.get("error"), "page")
    return PageText(answer["text"], answer.get("title", ""), is_cut="is_cut" in answer)


def describe_left_out(counts: Mapping[str, int]) -> str:
    """Return the parts of a file that its text lacks, in words; "" if it lacks none."""
    said = {
        "picture": ngettext_lazy("%d picture", "%d pictures"),
        "chart": ngettext_lazy("%d chart", "%d charts"),
        "file": ngettext_lazy("%d embedded file", "%d embedded files"),
        "recording": ngettext_lazy("%d recording", "%d recordings"),
        "symbol": ngettext_lazy("%d symbol", "%d symbols"),
        "formula": ngettext_lazy(
            "%d formula without a result", "%d formulas without a result"
        ),
        "row": ngettext_lazy("%d repeated row", "%d repeated rows"),
        "cell": ngettext_lazy("%d repeated cell", "%d repeated cells"),
        "form": ngettext_lazy(
            "fields and notes of %d page", "fields and notes of %d pages"
        ),
        "page": ngettext_lazy("%d page without text", "%d pages without text"),
    }
    return ", ".join(said[kind] % counts[kind] for kind in said if counts.get(kind))


def make_refusal(code: object, name: str, chars: int = WHOLE_CHARS) -> FileError:
    sentences = {
        "wrong_kind": _("%(name)s is not what its name says. Check the file."),
        "encrypted": _(
            "The file is protected, or was saved by a very old program. Save a copy "
            "without protection and attach that."
        ),
        "too_long": _(
            "The file has more than %(chars)s characters of text. Attach only the part "
            "that matters."
        ),
        "no_text": _(
            "%(name)s has no text: perhaps it is made of pictures. Attach them as "
            "images, or paste the text."
        ),
        "broken": _(
            "The file can't be read: it is damaged or incomplete. Open it elsewhere, "
            "save it again and attach that."
        ),
        "too_complex": _(
            "The file takes too much time or memory to read. Attach only the part that "
            "matters, or paste the text."
        ),
    }
    values = {"name": name, "chars": f"{chars:,}"}
    return processes.make_refusal(sentences, code, values)
