"""The split page, its fragments, and the JSON of one conversation."""

from collections.abc import AsyncIterator, Iterator
from typing import Any, TypeVar

from channels.db import database_sync_to_async
from django.conf import settings
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    JsonResponse,
    StreamingHttpResponse,
)
from django.http.response import HttpResponseBase

from chatsite.accounts import preferences
from chatsite.accounts.access import Values, conversation_fragment, conversation_view
from chatsite.features.attachments.images.files import read_image_of
from chatsite.features.attachments.long_files.store import read_long
from chatsite.features.tree.listing import note_use
from chatsite.jobs import activity
from chatsite.turns import model_access
from chatsite.turns.requests import model_of
from memory.models import Conversation, ModelCall

from .forms import NumberForm
from .presenters import (
    context_pane,
    conversation_list,
    guide,
    thread_json,
    transcript_pane,
)

Response = TypeVar("Response", bound=HttpResponseBase)


def read_number(request: HttpRequest, name: str) -> int | None:
    """Return a number of the address; None if it is not given."""
    form = NumberForm(request.GET)
    form.is_valid()
    if name in form.errors:
        raise Http404
    return form.cleaned_data.get(name)


@conversation_fragment("chat/conversation.html")
def show_conversation(request: HttpRequest, conversation: Conversation) -> Values:
    note_use(conversation)
    pane = transcript_pane.show_latest_turns(conversation)
    at, model = read_number(request, "at"), model_of(conversation)
    return {
        # Before the right pane is read: a change in between makes the page load it.
        "page_state": transcript_pane.hash_state(conversation, pane),
        **context_values(request, conversation),
        "pane": pane,
        "older": transcript_pane.show_turns_around(conversation, at),
        "max_chars": settings.MESSAGE_MAX_CHARS,
        "enter_breaks_line": preferences.follow_browser(request).enter_breaks_line,
        "model": model,
        "models": model_access.list_choices_for(conversation.owner_id, model),
        **conversation_list.make_list(request.user, request.GET),
        "guide": "guide" in request.GET and guide.find_guide_step(conversation),
        **activity.template_values(conversation),
    }


@conversation_fragment("chat/_guide_answer.html")
def show_guide(request: HttpRequest, conversation: Conversation) -> Values:
    """Show the second act of the demo, at the step that the user has reached."""
    now = guide.find_guide_step(conversation)
    if now.step in ("watch", "wait"):
        return HttpResponse(status=204)  # what the page shows already
    return {"guide": now}


@conversation_fragment("chat/_turns.html")
def show_more_turns(request: HttpRequest, conversation: Conversation) -> Values:
    """Show earlier turns for the top of the page, or those missing between two."""
    before, after = read_number(request, "before"), read_number(request, "after")
    if before and after:
        pane = transcript_pane.show_turns_between(conversation, after, before)
    else:
        pane = transcript_pane.show_latest_turns(conversation, before=before)
    return {"pane": pane}


@conversation_fragment("chat/_message_menu.html")
def show_message_menu(
    request: HttpRequest, conversation: Conversation, *, seq: int
) -> Values:
    """Show the actions on a message; a page loads them when its menu is first used."""
    message = transcript_pane.show_message(conversation, seq)
    if message is None:
        raise Http404
    return {"message": message}


def context_values(request: HttpRequest, conversation: Conversation) -> dict[str, Any]:
    try:
        shown = context_pane.model_view(
            conversation, reply=read_number(request, "reply")
        )
    except ModelCall.DoesNotExist:
        raise Http404 from None
    return {"conversation": conversation, "context": shown}


show_context = conversation_fragment("chat/_context.html")(context_values)


@conversation_view("GET")
def transcript_json(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    messages = list(thread_json.list_messages(conversation))
    return respond_with_json({"messages": messages})


@conversation_view("GET")
def context_json(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    return respond_with_json(find_context(request, conversation))


def find_context(request: HttpRequest, conversation: Conversation) -> dict[str, Any]:
    """Return the request of the next turn, or of the reply that the address names."""
    try:
        return thread_json.describe_context(conversation, read_number(request, "reply"))
    except ModelCall.DoesNotExist:
        raise Http404 from None


@conversation_view("GET")
def attachment(
    request: HttpRequest, conversation: Conversation, seq: int, place: int
) -> HttpResponseBase:
    """Return the whole text of a file that is attached to message `seq`."""
    message = conversation.messages.filter(seq=seq).first()
    files = message.files if message else []
    if place >= len(files):
        raise Http404
    kind = "text/plain; charset=utf-8"
    long = files[place].long and read_long(conversation, seq, place)
    if long:
        response = StreamingHttpResponse(_give_pieces(long), content_type=kind)
    else:
        response = HttpResponse(files[place].text, content_type=kind)
    return respond_with_file(response, conversation, f"{seq}-{place + 1}.txt")


def find_image_response(
    request: HttpRequest, conversation: Conversation, seq: int, place: int
) -> HttpResponse:
    """Return an image of message `seq` as models get it, or its small copy."""
    is_small = request.GET.get("size") == "small"
    found = read_image_of(conversation, seq, place, is_small)
    if found is None:
        raise Http404
    kind, data = found
    return respond_with_image(data, kind)


def respond_with_image(data: bytes, kind: str) -> HttpResponse:
    """Return an image, of which nothing can run."""
    response = HttpResponse(data, kind)
    response["Content-Security-Policy"] = "default-src 'none'; sandbox"
    return response


async def _give_pieces(pieces: Iterator[str]) -> AsyncIterator[str]:
    """Each is read when the one before it has been taken."""
    give = database_sync_to_async(next)
    while piece := await give(pieces, ""):
        yield piece


@conversation_view("GET")
def summaries_json(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    summaries = list(thread_json.list_summaries(conversation))
    return respond_with_json({"summaries": summaries})


def respond_with_json(value: dict[str, Any], status: int = 200) -> JsonResponse:
    options = {"ensure_ascii": False}
    return JsonResponse(value, json_dumps_params=options, status=status)


def respond_with_file(
    response: Response, conversation: Conversation, extension: str
) -> Response:
    """Return the file; its name is made here, as a title could inject a header."""
    name = f"conversation-{str(conversation.uuid)[:8]}.{extension}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
