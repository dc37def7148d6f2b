"""Copies of conversations to hand over: one or many, as JSON, as Markdown, as a zip.

They are written while they are sent, conversation by conversation, and each is in the
access log before any of it is sent. Without the right to read, the texts are masked.
"""

import json
import zipfile
from collections.abc import AsyncIterator, Callable, Iterable
from io import RawIOBase
from typing import Any

from channels.db import database_sync_to_async
from django.http import HttpRequest, StreamingHttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _

from chatsite.review import access_log
from chatsite.review.redaction import ERROR_CODES
from chatsite.review.rights import Rights
from memory.models import Conversation
from memory.prompts import hash_text

from ..tables import exported_lists
from ..thread_format import (
    FORMAT,
    ReplyReferences,
    SummaryReferences,
    list_masked,
    list_rows,
)
from ..thread_format import Conversation as ThreadSettings
from .as_markdown import write_markdown
from .thread import dump_export, export_thread, write_threads

TYPES = {"json": "application/json", "md": "text/markdown; charset=utf-8"}

ACTION = "export"  # in the access log

Writer = Callable[[Conversation, Rights], str]
Values = dict[str, Any]

# Texts of a policy.
OF_POLICY = (
    *("important", "focus", "initial_prompt", "extend_prompt", "merge_prompt"),
    "final_prompt",
)
# An import may have brought more of them, with whatever in it.
REFERENCES = {**ReplyReferences.model_fields, **SummaryReferences.model_fields}


def write_json(conversation: Conversation, rights: Rights) -> str:
    value = export_thread(conversation)
    value = value if rights.content else mask_export(value)
    return dump_export({**value, "texts": rights.content})


def write_text(conversation: Conversation, rights: Rights) -> str:
    show = str if rights.content else mask_text
    return write_markdown(conversation, show=show)


WRITERS: dict[str, Writer] = {"json": write_json, "md": write_text}


def send_one(
    request: HttpRequest, conversation: Conversation, rights: Rights, form: str
) -> StreamingHttpResponse:
    async def parts() -> AsyncIterator[str]:
        for _file, text in await _write_files(request, conversation.pk, rights, form):
            yield text

    return _send_file(parts(), TYPES[form], f"{_name_file(conversation)}.{form}")


def send_many_as_json(
    request: HttpRequest, ids: Iterable[int], rights: Rights
) -> StreamingHttpResponse:
    """One document in the form of the account's own export, so it can be imported."""
    head = {
        "format": FORMAT,
        "exported_at": timezone.now(),
        "exported_by": request.user.get_username(),
        "texts": rights.content,
    }

    async def read(pk: int) -> str:
        written = await _write_files(request, pk, rights, "json")
        return "".join(text for _file, text in written)

    parts = write_threads(head, ids, read)
    return _send_file(parts, TYPES["json"], _name_archive("json"))


def send_many_as_zip(
    request: HttpRequest, ids: Iterable[int], rights: Rights
) -> StreamingHttpResponse:
    """Each conversation as a file to read and a file to check, in one archive."""

    async def parts() -> AsyncIterator[bytes]:
        pipe = _Pipe()
        with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
            for pk in ids:
                for name, text in await _write_files(request, pk, rights, *WRITERS):
                    archive.writestr(name, text)
                    yield pipe.take()
        yield pipe.take()

    return _send_file(parts(), "application/zip", _name_archive("zip"))


class _Pipe(RawIOBase):
    """A file that an archive is written to and that is read as it grows."""

    def __init__(self) -> None:
        self.waiting = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:
        self.waiting += data
        return len(data)

    def take(self) -> bytes:
        taken, self.waiting = bytes(self.waiting), bytearray()
        return taken


@database_sync_to_async
def _write_files(
    request: HttpRequest, pk: int, rights: Rights, *forms: str
) -> list[tuple[str, str]]:
    """Names and texts; nothing when it was erased while the others were written."""
    conversation = Conversation.objects.select_related("owner").filter(pk=pk).first()
    if conversation is None:
        return []
    note = "" if rights.content else ", without texts"
    target = f"export {' '.join(forms)}{note}"
    access_log.record_access(request, ACTION, conversation, target)
    name = _name_file(conversation)
    return [(f"{name}.{form}", WRITERS[form](conversation, rights)) for form in forms]


def _name_file(conversation: Conversation) -> str:
    return f"conversation-{conversation.uuid}"


def _send_file(
    parts: AsyncIterator[str | bytes], content_type: str, name: str
) -> StreamingHttpResponse:
    answer = StreamingHttpResponse(parts, content_type=content_type)
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


def _name_archive(form: str) -> str:
    return f"conversations-{timezone.localdate():%Y-%m-%d}.{form}"


def mask_export(value: Values) -> Values:
    """Return an export with null in place of each text, its length and its hash.

    So a copy can be compared without being read. The numbers stay.
    """
    masked = value["conversation"] | {
        "policy": _hide_texts(value["conversation"]["policy"], OF_POLICY)
    }
    prompts = value["prompts"]
    lists = {name: list_masked(row) for name, row in list_rows().items()}
    lists |= {each.name: each.texts for each in exported_lists()}
    return value | {
        "conversation": _hide_texts(masked, list_masked(ThreadSettings)),
        "prompts": dict.fromkeys(prompts),
        "prompts_length": {sha256: len(text) for sha256, text in prompts.items()},
        **{
            name: [_hide_texts(_hide_references(row), texts) for row in value[name]]
            for name, texts in lists.items()
        },
    }


def mask_text(text: str) -> str:
    """Return the length and the hash of a text, instead of the text."""
    if not text:
        return ""
    redaction = _("hidden, %(count)s characters") % {"count": len(text)}
    return f"[{redaction}, sha256 {hash_text(text)}]"


def _hide_texts(row: Values, names: Iterable[str]) -> Values:
    shown = dict(row)
    for name in names:
        value = row.get(name)
        # Errors are codes of the site, unless an import has brought its own.
        if value and not (name == "error" and value in ERROR_CODES):
            text = value
            if not isinstance(value, str):
                text = json.dumps(
                    value, ensure_ascii=False, sort_keys=True, separators=(",", ":")
                )
            hidden = {f"{name}_length": len(text), f"{name}_sha256": hash_text(text)}
            shown |= {name: None, **hidden}
    return shown


def _hide_references(row: Values) -> Values:
    """Return a request with only those references that are numbers and hashes."""
    if "refs" not in row:
        return row
    refs = row["refs"] if isinstance(row["refs"], dict) else {}
    return row | {"refs": {name: refs[name] for name in REFERENCES if name in refs}}
