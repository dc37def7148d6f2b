"""Files that are to be attached to a message: uploaded before, and removed again.

The answers are JSON, for the page and for other clients: docs/protocol.md.
"""

from functools import partial
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from chatsite.database import close_connection
from chatsite.ops import load
from memory.transcript import TextError

from . import reading, uploads
from .errors import FileError
from .models import Upload

# Other refusals are 400.
STATUS = {"signed_out": 401, "too_large": 413, "too_many": 429, "busy": 429}


@require_POST
@never_cache
async def upload_file(request: HttpRequest) -> HttpResponse:
    """Keep the text of the form's `file` for a message of this person.

    Asynchronous, because a PDF can take seconds: the thread that all other pages share
    is not held up by it.
    """
    user = await request.auser()
    if not user.is_authenticated:
        return _refuse_upload(FileError("signed_out", _("Log in first.")))
    file = request.FILES.get("file")
    if file is None:
        words = _("There is no file. Choose one and attach it again.")
        return _refuse_upload(FileError("no_file", words))
    try:
        leave = partial(_give_up_place, request)
        found = await reading.read_file(user.pk, file.name, file, file.size, leave)
        kept = await sync_to_async(uploads.store_upload)(user, found)
    except TextError as error:
        return _refuse_upload(error)
    return JsonResponse(_describe_upload(kept), status=201)


async def _give_up_place(request: HttpRequest) -> None:
    """Hold nothing that others wait for: no place, and no connection of the pool."""
    await sync_to_async(close_connection)()
    load.leave_place(getattr(request, "scope", {}))


@require_POST
@never_cache
async def remove_file(request: HttpRequest, uuid: UUID) -> HttpResponse:
    """Forget a file that was not sent; another person's is as missing as none."""
    user = await request.auser()
    if not user.is_authenticated:
        return _refuse_upload(FileError("signed_out", _("Log in first.")))
    await sync_to_async(uploads.remove_upload)(user, uuid)
    return HttpResponse(status=204)


def _describe_upload(kept: Upload) -> dict[str, Any]:
    names = ("name", "kind", "size", "tokens")
    return {"id": str(kept.pk), **{name: getattr(kept, name) for name in names}}


def _refuse_upload(error: TextError) -> JsonResponse:
    value = {"error": error.code, "detail": error.detail}
    return JsonResponse(value, status=STATUS.get(error.code, 400))
