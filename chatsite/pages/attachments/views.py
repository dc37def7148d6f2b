"""Files that are attached to messages: uploaded before, removed again, and downloaded
from the transcript.

The answers are JSON, for the page and for other clients: docs/protocol.md.
"""

from functools import partial
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from chatsite.accounts.access import conversation_view
from chatsite.attachments import reading, uploads
from chatsite.attachments.errors import FileError
from chatsite.database import close_connection
from chatsite.ops import load
from memory.models import Conversation, Upload
from memory.transcript import WHOLE_CHARS, TextError

# Other refusals are 400.
STATUS = {"signed_out": 401, "too_large": 413, "too_many": 429, "busy": 429}


@require_POST
@never_cache
async def upload(request: HttpRequest) -> HttpResponse:
    """Keep the text of the form's `file` for a message of this person.

    Asynchronous, because a PDF can take seconds: the thread that all other pages share
    is not held up by it.
    """
    user = await request.auser()
    if not user.is_authenticated:
        return _refuse(FileError("signed_out", _("Log in first.")))
    file = request.FILES.get("file")
    if file is None:
        words = _("There is no file. Choose one and attach it again.")
        return _refuse(FileError("no_file", words))
    try:
        leave = partial(_leave, request)
        found = await reading.read(user.pk, file.name, file, file.size, leave)
        kept = await sync_to_async(uploads.store)(user, found)
    except TextError as error:
        return _refuse(error)
    return JsonResponse(_describe(kept), status=201)


async def _leave(request: HttpRequest) -> None:
    """Hold nothing that others wait for: no place, and no connection of the pool."""
    await sync_to_async(close_connection)()
    load.leave_place(getattr(request, "scope", {}))


@require_POST
@never_cache
async def remove(request: HttpRequest, uuid: UUID) -> HttpResponse:
    """Forget a file that was not sent; another person's is as missing as none."""
    user = await request.auser()
    if not user.is_authenticated:
        return _refuse(FileError("signed_out", _("Log in first.")))
    await sync_to_async(uploads.remove)(user, uuid)
    return HttpResponse(status=204)


@conversation_view("GET")
def download(
    request: HttpRequest, conversation: Conversation, seq: int, place: int
) -> HttpResponse:
    """The whole text of an attachment: a file, and never a page."""
    message = conversation.messages.filter(seq=seq).first()
    files = message.files if message else []
    if place >= len(files):
        raise Http404
    response = HttpResponse(files[place].text, content_type="text/plain; charset=utf-8")
    # The name is made here: that of the file could carry anything into the header.
    name = f"conversation-{str(conversation.uuid)[:8]}-{seq}-{place + 1}.txt"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


def limits_of_composer() -> dict[str, Any]:
    """What the message box says at once; the server would say it in a moment."""
    mb = settings.ATTACHMENT_MAX_MB
    return {
        "max_chars": settings.MESSAGE_MAX_CHARS,
        "attachment_limits": {
            "mb": mb,
            "bytes": mb * 1024 * 1024,
            "chars": WHOLE_CHARS,
        },
    }


def _describe(kept: Upload) -> dict[str, Any]:
    names = ("name", "kind", "size", "tokens")
    return {"id": str(kept.pk), **{name: getattr(kept, name) for name in names}}


def _refuse(error: TextError) -> JsonResponse:
    value = {"error": error.code, "detail": error.detail}
    return JsonResponse(value, status=STATUS.get(error.code, 400))
