"""Trials of a reply for its owner: the dialog, and the same as JSON."""

from typing import Any

from asgiref.sync import async_to_sync
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django_htmx.http import HttpResponseClientRedirect

from chatsite.accounts.access import Values, conversation_fragment, conversation_view
from chatsite.pages.list_views import retry_later
from chatsite.pages.memory_actions import Notice, answer_notice
from chatsite.pages.views import respond_with_json
from chatsite.protocol import events
from chatsite.protocol.errors import CommandError
from memory.models import Conversation, Message
from memory.transcript import ActionError, TextError

from . import job, parts, services, store
from .forms import TrialForm
from .models import Trial

Refused = (ActionError, TextError, CommandError)


def _open_dialog(
    conversation: Conversation, seq: int, form: TrialForm, error: str = ""
) -> dict[str, Any]:
    reply = get_object_or_404(
        conversation.messages, seq=seq, role=Message.Role.ASSISTANT
    )
    asked = conversation.messages.filter(seq__lt=seq, role=Message.Role.USER)
    question = asked.order_by("-seq").first()
    number, words = (question.seq, question.typed) if question else ("", "")
    return {
        "conversation": conversation,
        "reply": reply,
        "form": form,
        "error": error,
        "number": form.data.get("message", number),
        "words": form.data.get("text", words),
        "max_chars": settings.MESSAGE_MAX_CHARS,
        "trials": [
            parts.show_trial(each) for each in services.list_trials(conversation, seq)
        ],
    }


@conversation_view("GET")
def show_trials(
    request: HttpRequest, conversation: Conversation, seq: int
) -> HttpResponse:
    error = ""
    try:
        services.find_request(conversation, seq)
    except ActionError as refusal:
        error = str(refusal)
    values = _open_dialog(conversation, seq, TrialForm(conversation.owner_id), error)
    return render(request, "trials/dialog.html", values)


@conversation_view("POST")
def post_trial(
    request: HttpRequest, conversation: Conversation, seq: int
) -> HttpResponse:
    """Try reply `seq` again, as the fields of the form say."""
    form = TrialForm(conversation.owner_id, request.POST)
    error, refusal = form.complaint, None
    if not error:
        try:
            trial = services.start_trial(conversation, seq, form.variation)
            async_to_sync(job.start_trials)()
        except Refused as refused:
            error, refusal = str(refused), refused
    if request.htmx:
        values = _open_dialog(conversation, seq, form, error)
        return render(request, "trials/dialog.html", values)
    if not error:
        return respond_with_json(parts.trial_to_json(trial), status=201)
    response = respond_with_json({"detail": error}, status=409)
    is_limit = isinstance(refusal, CommandError) and refusal.retry_after is not None
    return retry_later(response, refusal) if is_limit else response


@conversation_view("POST")
def post_ask(
    request: HttpRequest, conversation: Conversation, seq: int
) -> HttpResponse:
    """Ask the question of reply `seq` again, with what the model reads now.

    The page gets the answer beside the reply, others the trial as JSON.
    """
    try:
        trial = services.ask_again(conversation, seq)
    except Refused as error:
        return answer_notice(request, conversation, Notice(str(error), is_error=True))
    async_to_sync(job.start_trials)()
    if not request.htmx:
        return respond_with_json(parts.trial_to_json(trial), status=201)
    values = {"conversation": conversation, "shown": parts.show_trial(trial)}
    values["reply"] = trial.message
    return render(request, "trials/_beside.html", values)


@conversation_view("GET")
def trials_json(
    request: HttpRequest, conversation: Conversation, seq: int
) -> HttpResponse:
    rows = services.list_trials(conversation, seq)
    return respond_with_json({"trials": [parts.trial_to_json(each) for each in rows]})


@conversation_fragment("trials/_words.html")
def show_words(request: HttpRequest, conversation: Conversation) -> Values:
    """Return the field for new words, with those of a message."""
    number = request.GET.get("message", "")
    seq = int(number[:10]) if number.isascii() and number.isdigit() else 0
    message = conversation.messages.filter(seq=min(seq, 2**31 - 1)).first()
    words = message.typed if message else ""
    return {"words": words, "max_chars": settings.MESSAGE_MAX_CHARS}


def _get_trial(conversation: Conversation, trial: int) -> Trial:
    rows = conversation.trials.select_related("message", "call")
    return get_object_or_404(rows, pk=trial)


@conversation_view("POST")
def post_stop(
    request: HttpRequest, conversation: Conversation, trial: int
) -> HttpResponse:
    row = store.end_trial(_get_trial(conversation, trial))
    if row.is_finished:
        async_to_sync(job.tell_trial)(row)
    return HttpResponse(parts.draw_card(conversation, row))


@conversation_view("POST")
def post_next(
    request: HttpRequest, conversation: Conversation, trial: int
) -> HttpResponse:
    try:
        services.use_next(conversation, _get_trial(conversation, trial))
    except Refused as error:
        return answer_notice(request, conversation, Notice(str(error), is_error=True))
    undo = reverse("trial-next-forget", args=[conversation.uuid])
    text = _("The next message is sent like this trial, and only that one.")
    async_to_sync(events.publish_change)(conversation.pk)
    return answer_notice(request, conversation, Notice(text, undo))


@conversation_view("POST")
def forget_next(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """Have the next message sent like all others again."""
    services.forget_next(conversation)
    text = _("The next message is sent like all others.")
    async_to_sync(events.publish_change)(conversation.pk)
    return answer_notice(request, conversation, Notice(text))


@conversation_view("POST")
def post_reply(
    request: HttpRequest, conversation: Conversation, trial: int
) -> HttpResponse:
    """Create a branch in which the trial's answer is the reply."""
    try:
        made = services.make_reply(conversation, _get_trial(conversation, trial))
    except Refused as error:
        return answer_notice(request, conversation, Notice(str(error), is_error=True))
    address = reverse("conversation-detail", args=[made.uuid])
    return HttpResponseClientRedirect(address) if request.htmx else redirect(address)
