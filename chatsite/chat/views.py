"""Pages, htmx fragments and JSON of a person's own conversations.

Every view of a conversation begins with `_own`: what belongs to somebody else is as
missing as what never existed.
"""

from typing import Any

from asgiref.sync import async_to_sync
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import (
    require_GET,
    require_POST,
)

from memory import acts, folding, transcript
from memory.models import Conversation, ModelCall

from . import demo as demo_conversation
from . import export, model_sees, runner, you_see
from .access import private, with_conversation
from .forms import (
    NewConversationForm,
    NumberForm,
    PolicyForm,
    RenameForm,
    SearchForm,
)

LIST_MAX = 200


def _number(request: HttpRequest, name: str) -> int | None:
    form = NumberForm(request.GET)
    form.is_valid()
    if name in form.errors:
        raise Http404
    return form.cleaned_data.get(name)


def _conversations(request: HttpRequest) -> dict[str, Any]:
    """The list, narrowed to titles that contain `q`."""
    form = SearchForm(request.GET)
    if not form.is_valid():
        return {"conversations": [], "query": form.data.get("q", "")}
    query = form.cleaned_data["q"]
    rows = transcript.list_for(request.user, query)[:LIST_MAX]
    return {"conversations": rows, "query": query}


@require_GET
@private
def index(request: HttpRequest) -> HttpResponse:
    shown = _conversations(request)
    if request.htmx:
        return render(request, "chat/_conversation_list.html", shown)
    return render(request, "chat/list.html", {"form": NewConversationForm(), **shown})


@require_POST
@private
def create(request: HttpRequest) -> HttpResponse:
    form = NewConversationForm(request.POST)
    if not form.is_valid():
        shown = {"form": form, **_conversations(request)}
        return render(request, "chat/list.html", shown, status=400)
    conversation = transcript.create(request.user, **form.cleaned_data)
    return redirect("conversation-detail", conversation.uuid)


@require_POST
@private
def demo(request: HttpRequest) -> HttpResponse:
    conversation = demo_conversation.start(request.user)
    return redirect("conversation-detail", conversation.uuid)


@require_GET
@private
@with_conversation
def detail(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    values = {
        "conversation": conversation,
        "pane": you_see.transcript(conversation),
        "context": _model_view(request, conversation),
        "policy_form": PolicyForm.of(conversation),
        "max_chars": settings.MESSAGE_MAX_CHARS,
        **_conversations(request),
    }
    return render(request, "chat/conversation.html", values)


@require_GET
@private
@with_conversation
def messages(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """Earlier turns, to be put above those on the page."""
    pane = you_see.transcript(conversation, before=_number(request, "before"))
    values = {"conversation": conversation, "pane": pane}
    return render(request, "chat/_turns.html", values)


@require_GET
@private
@with_conversation
def context(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    return _context(request, conversation)


def _context(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    values = {
        "conversation": conversation,
        "context": _model_view(request, conversation),
    }
    return render(request, "chat/_context.html", values)


def _model_view(
    request: HttpRequest, conversation: Conversation
) -> model_sees.ContextPane:
    try:
        return model_sees.model_view(conversation, reply=_number(request, "reply"))
    except ModelCall.DoesNotExist:
        raise Http404 from None


@require_POST
@private
@with_conversation
def rename(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    form = RenameForm(request.POST)
    if form.is_valid():
        transcript.rename(conversation, form.cleaned_data["title"])
    elif request.htmx:
        values = {"detail": form.errors["title"][0], "code": "bad_title"}
        return render(request, "chat/_error.html", values)
    if request.htmx:
        values = {"conversation": conversation}
        return render(request, "chat/_title.html", values)
    return redirect("conversation-detail", conversation.uuid)


@require_POST
@private
@with_conversation
def delete(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """A reply that is being written for it finds nothing to be written to."""
    conversation.delete()
    return redirect("conversation-list")


@require_POST
@private
@with_conversation
def fold(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """Let the fold job try again after it had given up."""
    folding.reset(conversation)
    async_to_sync(_start_folding)(conversation.pk)
    if request.htmx:
        conversation.refresh_from_db()
        return _context(request, conversation)
    return redirect("conversation-detail", conversation.uuid)


@require_POST
@private
@with_conversation
def set_policy(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """Remember in another way from now on; what was typed stays when it is wrong."""
    form = PolicyForm(request.POST)
    is_set = form.is_valid()
    if is_set:
        acts.set_policy(conversation, form.cleaned_data["policy"])
        async_to_sync(_start_folding)(conversation.pk)
        form = PolicyForm.of(conversation)
    if is_set and not request.htmx:
        return redirect("conversation-detail", conversation.uuid)
    values = {"conversation": conversation, "policy_form": form, "is_set": is_set}
    # htmx swaps in nothing that came with an error.
    status = 200 if is_set or request.htmx else 422
    return render(request, "chat/_policy.html", values, status=status)


async def _start_folding(conversation_id: int) -> None:
    runner.start_folding(conversation_id)


def _json(value: dict[str, Any]) -> JsonResponse:
    return JsonResponse(value, json_dumps_params={"ensure_ascii": False})


@require_GET
@private
@with_conversation
def transcript_json(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    return _json({"messages": list(export.messages(conversation))})


@require_GET
@private
@with_conversation
def context_json(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    try:
        return _json(export.context_of(conversation, _number(request, "reply")))
    except ModelCall.DoesNotExist:
        raise Http404 from None


@require_GET
@private
@with_conversation
def summaries_json(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    return _json({"summaries": list(export.summaries(conversation))})


@require_GET
@private
@with_conversation
def export_json(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    return _download(_json(export.whole(conversation)), conversation, "json")


@require_GET
@private
@with_conversation
def export_md(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    text = export.markdown(conversation)
    response = HttpResponse(text, content_type="text/markdown; charset=utf-8")
    return _download(response, conversation, "md")


def _download(
    response: HttpResponse, conversation: Conversation, extension: str
) -> HttpResponse:
    """The name is made here: a title could carry anything into the header."""
    name = f"conversation-{str(conversation.uuid)[:8]}.{extension}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


@require_GET
def healthz(request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok", content_type="text/plain")
