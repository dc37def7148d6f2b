"""Copies of conversations to hand over: one or many, as JSON, as Markdown, as a zip.

They are written while they are sent, conversation by conversation, and each is in the
access log before a word of it leaves. Without the right to read, the words are masked.
"""

import json
import zipfile
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from io import RawIOBase
from typing import Any

from channels.db import database_sync_to_async
from django.core.serializers.json import DjangoJSONEncoder
from django.http import HttpRequest, StreamingHttpResponse
from django.utils import timezone

from chatsite.transfer import export, export_markdown
from memory.models import Conversation

from .. import access_log
from ..rights import Rights
from . import masking

TYPES = {"json": "application/json", "md": "text/markdown; charset=utf-8"}

Writer = Callable[[Conversation, Rights], str]


def as_json(conversation: Conversation, rights: Rights) -> str:
    value = export.whole(conversation)
    value = value if rights.content else masking.hide(value)
    return _dump({**value, "texts": rights.content})


def as_markdown(conversation: Conversation, rights: Rights) -> str:
    show = str if rights.content else masking.hide_words
    return export_markdown.markdown(conversation, show=show)


WRITERS: dict[str, Writer] = {"json": as_json, "md": as_markdown}


def one(
    request: HttpRequest, conversation: Conversation, rights: Rights, form: str
) -> StreamingHttpResponse:
    async def parts() -> AsyncIterator[str]:
        for _, text in await _files(request, conversation.pk, rights, form):
            yield text

    return _answer(parts(), TYPES[form], f"{_name(conversation)}.{form}")


def many_as_json(
    request: HttpRequest, ids: Iterable[int], rights: Rights
) -> StreamingHttpResponse:
    """One document in the form of the account's own export, so it can be imported."""
    head = {
        "format": export.FORMAT,
        "exported_at": timezone.now(),
        "exported_by": request.user.get_username(),
        "texts": rights.content,
    }

    async def parts() -> AsyncIterator[str]:
        yield _dump(head)[:-1] + ', "conversations": ['
        separator = "\n"
        for pk in ids:
            for _, text in await _files(request, pk, rights, "json"):
                yield separator + text
                separator = ",\n"
        yield "\n]}\n"

    return _answer(parts(), TYPES["json"], f"conversations-{_today()}.json")


def many_as_zip(
    request: HttpRequest, ids: Iterable[int], rights: Rights
) -> StreamingHttpResponse:
    """Each conversation as a file to read and a file to check, in one archive."""

    async def parts() -> AsyncIterator[bytes]:
        pipe = _Pipe()
        with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
            for pk in ids:
                for name, text in await _files(request, pk, rights, *WRITERS):
                    archive.writestr(name, text)
                    yield pipe.take()
        yield pipe.take()

    return _answer(parts(), "application/zip", f"conversations-{_today()}.zip")


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


Files = list[tuple[str, str]]


async def _files(request: HttpRequest, pk: int, rights: Rights, *forms: str) -> Files:
    return await database_sync_to_async(_write)(request, pk, rights, forms)


def _write(
    request: HttpRequest, pk: int, rights: Rights, forms: Sequence[str]
) -> Files:
    """Nothing when it was erased while the others were written."""
    conversation = Conversation.objects.select_related("owner").filter(pk=pk).first()
    if conversation is None:
        return []
    note = "" if rights.content else ", without texts"
    target = f"export {' '.join(forms)}{note}"
    access_log.record(request, access_log.Action.EXPORT, conversation, target)
    name = _name(conversation)
    return [(f"{name}.{form}", WRITERS[form](conversation, rights)) for form in forms]


def _name(conversation: Conversation) -> str:
    return f"conversation-{conversation.uuid}"


def _answer(
    parts: AsyncIterator[str | bytes], content_type: str, name: str
) -> StreamingHttpResponse:
    answer = StreamingHttpResponse(parts, content_type=content_type)
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    answer["X-Content-Type-Options"] = "nosniff"
    return answer


def _today() -> str:
    return f"{timezone.localdate():%Y-%m-%d}"


def _dump(value: dict[str, Any]) -> str:
    return json.dumps(value, cls=DjangoJSONEncoder, ensure_ascii=False)
