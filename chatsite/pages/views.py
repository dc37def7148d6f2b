"""The split page, its fragments, and the JSON of one conversation."""

from mimetypes import guess_extension
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.http import content_disposition_header

from chatsite.accounts import preferences
from chatsite.accounts.access import conversation_view
from chatsite.jobs import activity
from chatsite.llm import providers
from chatsite.turns.requests import model_of
from chatsite.turns.tool_loop import reminders
from memory.engine.file_names import clean_file_name
from memory.models import Conversation, Message, ModelCall

from .forms import NumberForm
from .presenters import (
    context_pane,
    conversation_list,
    guide,
    result_files,
    thread_json,
    tool_cards,
    transcript_pane,
)


def read_number(request: HttpRequest, name: str) -> int | None:
    """A number of the address; None if it is not given."""
    form = NumberForm(request.GET)
    form.is_valid()
    if name in form.errors:
        raise Http404
    return form.cleaned_data.get(name)


@conversation_view("GET")
def show_conversation(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    values = {
        **context_values(request, conversation),
        "pane": transcript_pane.show_latest_turns(conversation),
        "older": transcript_pane.show_turns_around(
            conversation, read_number(request, "at")
        ),
        "max_chars": settings.MESSAGE_MAX_CHARS,
        "tool_cards": preferences.follow_browser(request).tool_cards,
        **model_values(conversation),
        **conversation_list.listed(request.user, request.GET),
        "guide": "guide" in request.GET and guide.find_guide_step(conversation),
        **activity.template_values(conversation),
        "unread": reminders.find_unread(request.user.pk),
    }
    return render(request, "chat/conversation.html", values)


@conversation_view("GET")
def show_guide(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """The second act of the demo, where the person is in it by now."""
    now = guide.find_guide_step(conversation, proved=bool(request.GET.get("proved")))
    if now.step in ("watch", "wait"):
        return HttpResponse(status=204)  # what the page shows already
    values = {"conversation": conversation, "guide": now}
    return render(request, "chat/_guide_answer.html", values)


@conversation_view("GET")
def show_more_turns(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """Earlier turns, to be put above those on the page, or some that are missing
    between two of them."""
    before, after = read_number(request, "before"), read_number(request, "after")
    if before and after:
        pane = transcript_pane.show_turns_between(conversation, after, before)
    else:
        pane = transcript_pane.show_latest_turns(conversation, before=before)
    values = {"conversation": conversation, "pane": pane}
    return render(request, "chat/_turns.html", values)


@conversation_view("GET")
def show_context(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    values = context_values(request, conversation)
    return render(request, "chat/_context.html", values)


def model_values(conversation: Conversation) -> dict[str, Any]:
    """The list of models beside the message box."""
    model = model_of(conversation)
    return {"model": model, "models": providers.list_model_choices(model)}


def context_values(request: HttpRequest, conversation: Conversation) -> dict[str, Any]:
    try:
        shown = context_pane.model_view(
            conversation, reply=read_number(request, "reply")
        )
    except ModelCall.DoesNotExist:
        raise Http404 from None
    return {"conversation": conversation, "context": shown}


@conversation_view("GET")
def transcript_json(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    return respond_with_json(
        {"messages": list(thread_json.list_messages(conversation))}
    )


@conversation_view("GET")
def context_json(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    return respond_with_json(find_context(request, conversation))


def find_context(request: HttpRequest, conversation: Conversation) -> dict[str, Any]:
    """The request of the next turn, or of the reply that the address names."""
    try:
        return thread_json.describe_context(conversation, read_number(request, "reply"))
    except ModelCall.DoesNotExist:
        raise Http404 from None


@conversation_view("GET")
def result(request: HttpRequest, conversation: Conversation, seq: int) -> HttpResponse:
    """The whole result of a tool's call: a file, and never a page."""
    texts = conversation.messages.filter(seq=seq, role=Message.Role.TOOL)
    text = texts.values_list("text", flat=True).first()
    if text is None:
        raise Http404
    response = HttpResponse(text, content_type="text/plain; charset=utf-8")
    return respond_with_file(response, conversation, f"{seq}.txt")


@conversation_view("GET")
def result_file(
    request: HttpRequest, conversation: Conversation, seq: int, place: int
) -> HttpResponse:
    """A file in the result of a tool's call. A browser saves it, or shows it as part of
    the card where it is a picture; nothing in it can run."""
    rows = conversation.result_files.filter(message__seq=seq, place=place)
    row = rows.exclude(data=None).first()
    if row is None:
        raise Http404
    response = HttpResponse(bytes(row.data), content_type=result_files.kind_of(row))
    name = clean_file_name(
        row.name or f"{seq}-{place}{guess_extension(row.kind) or ''}"
    )
    response["Content-Disposition"] = content_disposition_header(True, name)
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = "default-src 'none'; sandbox"
    return response


@conversation_view("GET")
def attachment(
    request: HttpRequest, conversation: Conversation, seq: int, place: int
) -> HttpResponse:
    """The whole text of a file that is attached to message `seq`."""
    message = conversation.messages.filter(seq=seq).first()
    files = message.files if message else []
    if place >= len(files):
        raise Http404
    response = HttpResponse(files[place].text, content_type="text/plain; charset=utf-8")
    return respond_with_file(response, conversation, f"{seq}-{place + 1}.txt")


@conversation_view("GET")
def arguments(
    request: HttpRequest, conversation: Conversation, seq: int, place: int
) -> HttpResponse:
    """All arguments of the call at this place of message `seq`, as on its card."""
    rows = conversation.messages.filter(seq=seq).values_list("tool_calls", flat=True)
    calls = rows.first() or []
    if place >= len(calls):
        raise Http404
    text = tool_cards.arguments_of(calls[place].get("args", {}))
    response = HttpResponse(text, content_type="application/json")
    return respond_with_file(response, conversation, f"{seq}-{place}.json")


@conversation_view("GET")
def summaries_json(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    return respond_with_json(
        {"summaries": list(thread_json.list_summaries(conversation))}
    )


def respond_with_json(value: dict[str, Any]) -> JsonResponse:
    return JsonResponse(value, json_dumps_params={"ensure_ascii": False})


def respond_with_file(
    response: HttpResponse, conversation: Conversation, extension: str
) -> HttpResponse:
    """The name is made here: a title could carry anything into the header."""
    name = f"conversation-{str(conversation.uuid)[:8]}.{extension}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["X-Content-Type-Options"] = "nosniff"
    return response
