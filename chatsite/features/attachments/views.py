"""Views that upload and remove files for a message, and show images of messages.

The answers are JSON, for the page and for other clients: docs/protocol.md.
"""

from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile, UploadedFile
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.utils.translation.trans_real import parse_accept_lang_header
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from chatsite.accounts.access import conversation_view, private_page
from chatsite.database import close_connection
from chatsite.ops import load
from chatsite.pages.views import (
    find_image_response,
    respond_with_file,
    respond_with_image,
)
from memory.models import Conversation
from memory.transcript import TextError

from . import processes, reading, uploads
from .errors import FileError, UnsureError
from .images import files
from .models import Upload
from .reading import ReadFile, ReadingHints

# Other refusals are 400.
STATUS = {
    **{"signed_out": 401, "unsure_encoding": 409, "too_large": 413},
    **{"too_many": 429, "busy": 429},
}


def post_of_user(
    view: Callable[..., Awaitable[HttpResponse]],
) -> Callable[..., Awaitable[HttpResponse]]:
    """Make a POST view that gets (request, user, ...), and answer its refusals.

    It is asynchronous because a PDF can take seconds, and would block the thread that
    all other pages share.
    """

    @require_POST
    @never_cache
    @wraps(view)
    async def answer(request: HttpRequest, **kwargs: Any) -> HttpResponse:
        user = await request.auser()
        try:
            if not user.is_authenticated:
                raise FileError("signed_out", _("Log in first."))
            return await view(request, user, **kwargs)
        except TextError as error:
            return _refuse_upload(error)

    return answer


@post_of_user
async def upload_file(request: HttpRequest, user: Any) -> HttpResponse:
    """Store the text of the form's `file` for a message of this user."""
    file = request.FILES.get("file")
    if file is None:
        words = _("There is no file. Choose one and attach it again.")
        raise FileError("no_file", words)
    hints = ReadingHints(_find_languages(request))
    try:
        kept = await _keep_file(request, user, file, hints)
    except UnsureError as error:
        return await _ask_reading(user, file, error)
    return JsonResponse(kept, status=201)


@post_of_user
async def choose_reading(request: HttpRequest, user: Any, uuid: UUID) -> HttpResponse:
    """Read the bytes of a file in the `encoding` that its owner has chosen."""
    codec = request.POST.get("encoding", "")
    unread = await sync_to_async(uploads.find_unread)(user, uuid, codec)
    file = SimpleUploadedFile(unread.name, unread.data)
    hints = ReadingHints(encoding=codec)
    kept = await _keep_file(request, user, file, hints, unread)
    return JsonResponse(kept, status=201)


def _find_languages(request: HttpRequest) -> list[str]:
    """Return the languages of the page and those that the browser asks for."""
    asked = parse_accept_lang_header(request.headers.get("Accept-Language", ""))
    return [each[:2] for each in (get_language() or "", *(name for name, _q in asked))]


async def _keep_file(
    request: HttpRequest,
    user: Any,
    file: UploadedFile,
    hints: ReadingHints,
    unread: Upload | None = None,
) -> dict[str, Any]:
    """Read and store it; a long one is held in memory only while it is its turn."""
    most = settings.ATTACHMENT_MAX_CHARS
    leave = partial(_give_up_place, request)
    async with processes.keep_turn():
        found = await reading.read_file(
            user.pk, file.name, file, file.size, leave, chars=most, hints=hints
        )
        kept = await sync_to_async(uploads.store_upload)(user, found, unread)
    return _describe_upload(kept, found)


async def _ask_reading(
    user: Any, file: UploadedFile, error: UnsureError
) -> HttpResponse:
    """Store the file unread, and answer with the encodings to choose from."""
    file.seek(0)
    store = sync_to_async(uploads.store_unread)
    kept = await store(user, file.name, file.read(), error.readings)
    readings = [
        {"encoding": each.codec, "name": each.name, "preview": each.preview}
        for each in error.readings
    ]
    question = {"id": str(kept.pk), "name": kept.name, "readings": readings}
    return _refuse_upload(error, question)


async def _give_up_place(request: HttpRequest) -> None:
    """Hold nothing that others wait for: no place, and no connection of the pool."""
    await sync_to_async(close_connection)()
    load.leave_place(getattr(request, "scope", {}))


@post_of_user
async def remove_file(request: HttpRequest, user: Any, uuid: UUID) -> HttpResponse:
    """Delete a file that was not sent; another user's file counts as missing."""
    await sync_to_async(uploads.remove_upload)(user, uuid)
    return HttpResponse(status=204)


@conversation_view("GET")
def show_image(
    request: HttpRequest, conversation: Conversation, seq: int, place: int
) -> HttpResponse:
    response = find_image_response(request, conversation, seq, place)
    ending = response["Content-Type"].partition("/")[2]
    return respond_with_file(response, conversation, f"{seq}-{place + 1}.{ending}")


@private_page("GET")
def show_unsent(request: HttpRequest, uuid: UUID) -> HttpResponse:
    """Return the small copy of an image that this user has not sent yet."""
    rows = Upload.objects.filter(owner=request.user, pk=uuid).exclude(small=None)
    small = get_object_or_404(rows.values_list("small", flat=True))
    return respond_with_image(bytes(small), files.SMALL_TYPE)


def _describe_upload(kept: Upload, read: ReadFile) -> dict[str, Any]:
    names = ("name", "kind", "size", "tokens")
    image = kept.image and {name: kept.image[name] for name in ("width", "height")}
    some = {"image": image, "encoding": read.encoding, "left_out": read.left_out}
    return {
        "id": str(kept.pk),
        **{name: getattr(kept, name) for name in names},
        **{name: value for name, value in some.items() if value},
    }


def _refuse_upload(
    error: TextError, question: dict[str, Any] | None = None
) -> JsonResponse:
    value = {"error": error.code, "detail": error.detail, **(question or {})}
    return JsonResponse(value, status=STATUS.get(error.code, 400))
