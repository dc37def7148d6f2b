"""Views to choose a conversation's tools, get results and files, and answer calls.

Calls are answered here if no socket is open.
"""

from mimetypes import guess_extension

from asgiref.sync import async_to_sync
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _

from chatsite.accounts.access import Values, conversation_fragment, conversation_view
from chatsite.features.tools import registry
from chatsite.llm import dialects
from chatsite.pages.memory_actions import Notice, address_of, memory_action
from chatsite.pages.presenters.calls import arguments_of
from chatsite.pages.views import respond_with_file
from chatsite.protocol.errors import CommandError
from chatsite.turns.requests import find_left_out, model_of
from memory import transcript
from memory.engine.file_names import clean_file_name
from memory.models import Conversation, Message

from . import late_results
from .cards import file_cards
from .commands import read_consent


@conversation_fragment("tools/_choice.html")
def choose_tools(request: HttpRequest, conversation: Conversation) -> Values:
    """Return the tools there are, with those that are on."""
    return {
        "tools": registry.available().values(),
        "missing": registry.missing(conversation.tools),
        "left_out": find_left_out(conversation),
        "unusable": registry.left_out(),
        "is_refused": not dialects.find_dialect(model_of(conversation)).has_tools,
    }


@memory_action
def set_tools(request: HttpRequest, conversation: Conversation) -> Notice:
    """Turn on the tools named in the form and turn off the others.

    One that is on already stays, even if its server is not available.
    """
    before, answered_late = conversation.tools, conversation.answers_late
    known = {*registry.available(), *before}
    wanted = [*request.POST.getlist("tool"), *request.POST.get("tools", "").split(",")]
    names = [name for name in dict.fromkeys(wanted) if name in known]
    transcript.change_tools(
        conversation, names, answers_late="answers_late" in request.POST
    )
    text = _("The model may call no tools.")
    if names:
        values = {"names": ", ".join(names)}
        text = _("From the next message on the model may call: %(names)s.") % values
    undo = {"tools": ",".join(before)}
    if answered_late:
        undo["answers_late"] = "on"
    return Notice(text, address_of(conversation, "set-tools"), undo)


@conversation_view("GET")
def show_result(
    request: HttpRequest, conversation: Conversation, seq: int
) -> HttpResponse:
    """Return the whole result of a tool's call as a file, never as a page."""
    texts = conversation.messages.filter(seq=seq, role=Message.Role.TOOL)
    text = get_object_or_404(texts.values_list("text", flat=True))
    response = HttpResponse(text, content_type="text/plain; charset=utf-8")
    return respond_with_file(response, conversation, f"{seq}.txt")


@conversation_view("GET")
def show_file(
    request: HttpRequest, conversation: Conversation, seq: int, place: int
) -> HttpResponse:
    """Return a file in the result of a tool's call.

    A browser saves it, or shows it on the card if it is a picture or a sound; nothing
    in it can run.
    """
    rows = conversation.result_files.filter(message__seq=seq, place=place)
    row = get_object_or_404(rows.exclude(data=None))
    response = HttpResponse(bytes(row.data), content_type=file_cards.kind_of(row))
    name = clean_file_name(
        row.name or f"{seq}-{place}{guess_extension(row.kind) or ''}"
    )
    response["Content-Disposition"] = content_disposition_header(True, name)
    response["Content-Security-Policy"] = "default-src 'none'; sandbox"
    return response


@conversation_view("GET")
def show_arguments(
    request: HttpRequest, conversation: Conversation, seq: int, place: int
) -> HttpResponse:
    """All arguments of the call at this place of message `seq`, as on its card."""
    rows = conversation.messages.filter(seq=seq).values_list("tool_calls", flat=True)
    calls = rows.first() or []
    if place >= len(calls):
        raise Http404
    text = arguments_of(calls[place].get("args", {}))
    response = HttpResponse(text, content_type="application/json")
    return respond_with_file(response, conversation, f"{seq}-{place}.json")


@conversation_view("POST")
def answer_call(
    request: HttpRequest, conversation: Conversation, call: int
) -> HttpResponse:
    """Store the answer to a call: `allow` ("true" or "false"), `digest`, `reason`."""
    try:
        given = read_consent({**request.POST.dict(), "call": call})
        answered = given.store_answer(conversation)
    except CommandError as error:
        return _refuse_command(error)
    async_to_sync(late_results.tell_answer)(answered)
    return redirect("conversation-detail", conversation.uuid)


@conversation_view("POST")
def cancel_call(
    request: HttpRequest, conversation: Conversation, call: int
) -> HttpResponse:
    try:
        cancelled = late_results.cancel(conversation, call)
    except CommandError as error:
        return _refuse_command(error)
    async_to_sync(late_results.tell)(cancelled)
    return redirect("conversation-detail", conversation.uuid)


def _refuse_command(error: CommandError) -> HttpResponse:
    status = 404 if error.code == "not_found" else 409
    return HttpResponse(error.detail, status=status, content_type="text/plain")
