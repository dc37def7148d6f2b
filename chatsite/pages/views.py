"""Pages, htmx fragments and JSON of a person's own conversations.

Every view of a conversation gets it from `with_conversation`: what belongs to somebody
else is as missing as what never existed.
"""

from collections.abc import Callable
from math import ceil
from typing import Any
from uuid import uuid4

from asgiref.sync import async_to_sync
from django.conf import settings
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from chatsite.accounts import preferences
from chatsite.accounts.access import private, with_conversation
from chatsite.jobs import activity
from chatsite.protocol.errors import CommandError
from chatsite.transfer import export, export_markdown
from chatsite.turns import lifecycle, limits, runner
from memory import transcript
from memory.compaction import compactor
from memory.engine.blank import is_blank
from memory.models import Conversation, ModelCall

from . import demo as demo_conversation
from .forms import NewConversationForm, NumberForm, PolicyForm
from .memory_actions import refuse
from .presenters import context_pane, conversation_list, transcript_pane


def _number(request: HttpRequest, name: str) -> int | None:
    form = NumberForm(request.GET)
    form.is_valid()
    if name in form.errors:
        raise Http404
    return form.cleaned_data.get(name)


@require_POST
@private
def create(request: HttpRequest) -> HttpResponse:
    form = NewConversationForm(request.POST)
    if not form.is_valid():
        shown = {"form": form, **conversation_list.listed(request.user, request.GET)}
        return render(request, "chat/list.html", shown, status=400)
    first = form.cleaned_data.pop("first")
    values = preferences.values_for(request.user, **form.cleaned_data)

    def make() -> Conversation:
        made = transcript.create(request.user, **values)
        if not is_blank(first):
            # The page that opens next lets it be answered.
            lifecycle.submit(made, text=first, client_id=uuid4().hex)
            limits.admit_turn(request.user.pk)
        return made

    return _begin(request, form, make)


@require_POST
@private
def demo(request: HttpRequest) -> HttpResponse:
    form = NewConversationForm()
    return _begin(request, form, lambda: demo_conversation.start(request.user))


def _begin(
    request: HttpRequest, form: NewConversationForm, make: Callable[[], Conversation]
) -> HttpResponse:
    """Lead to a new conversation, unless there were too many in a short time."""
    try:
        with transaction.atomic():
            conversation = make()
            limits.admit_conversation(request.user.pk)
    except CommandError as error:
        shown = {
            "form": form,
            "refusal": error.detail,
            **conversation_list.listed(request.user, request.GET),
        }
        response = render(request, "chat/list.html", shown, status=429)
        response["Retry-After"] = str(ceil(error.retry_after or 1))
        return response
    return redirect("conversation-detail", conversation.uuid)


@require_GET
@private
@with_conversation
def detail(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    values = {
        "conversation": conversation,
        "pane": transcript_pane.transcript(conversation),
        "older": transcript_pane.around(conversation, _number(request, "at")),
        "context": _model_view(request, conversation),
        "policy_form": PolicyForm.of(conversation),
        "max_chars": settings.MESSAGE_MAX_CHARS,
        **conversation_list.listed(request.user, request.GET),
        **activity.template_values(conversation),
    }
    return render(request, "chat/conversation.html", values)


@require_GET
@private
@with_conversation
def messages(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """Earlier turns, to be put above those on the page, or some that are missing
    between two of them."""
    before, after = _number(request, "before"), _number(request, "after")
    if before and after:
        pane = transcript_pane.between(conversation, after, before)
    else:
        pane = transcript_pane.transcript(conversation, before=before)
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
) -> context_pane.ContextPane:
    try:
        return context_pane.model_view(conversation, reply=_number(request, "reply"))
    except ModelCall.DoesNotExist:
        raise Http404 from None


@require_POST
@private
@with_conversation
def compact(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """Let the compaction job try again after it had given up."""
    try:
        limits.admit_spending(conversation.owner_id)
    except CommandError as error:
        return refuse(request, conversation, error)
    compactor.reset(conversation)
    async_to_sync(runner.compact_soon)(conversation.pk)
    if request.htmx:
        conversation.refresh_from_db()
        return _context(request, conversation)
    return redirect("conversation-detail", conversation.uuid)


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
    text = export_markdown.markdown(conversation)
    response = HttpResponse(text, content_type="text/markdown; charset=utf-8")
    return _download(response, conversation, "md")


def _download(
    response: HttpResponse, conversation: Conversation, extension: str
) -> HttpResponse:
    """The name is made here: a title could carry anything into the header."""
    name = f"conversation-{str(conversation.uuid)[:8]}.{extension}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
