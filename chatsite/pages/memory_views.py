"""Looking at the model's view from the page: previews, versions and what they changed,
what was forgotten, what it saved, how it stood at a moment.
"""

import json
from typing import Any

from asgiref.sync import async_to_sync
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET, require_POST

from chatsite.accounts.access import private, with_conversation
from chatsite.jobs import summary_proposals, tasks
from chatsite.llm import providers
from chatsite.protocol.errors import CommandError
from chatsite.transfer import export
from chatsite.turns import lifecycle, limits, requests
from chatsite.turns.models import Job
from memory import actions
from memory.compaction import proposals
from memory.engine.policy import Policy
from memory.models import Conversation, ModelCall, Summary

from .diff import diff as compare
from .forms import NumberForm, PolicyForm, SearchForm
from .presenters import context_pane, savings, search
from .presenters.snapshot import messages_at

MAX_VERSIONS = 200
State = Job.State


@require_GET
@private
@with_conversation
def preview(
    request: HttpRequest, conversation: Conversation, *, seq: int
) -> HttpResponse:
    """What compaction up to a message would do; no model is asked yet."""
    values: dict[str, Any] = {"conversation": conversation, "seq": seq}
    try:
        values["plan"] = summary_proposals.plan(conversation, seq)
    except actions.ActionError as error:
        values["error"] = str(error)
    return render(request, "chat/_compaction_preview.html", values)


@require_POST
@private
@with_conversation
def propose(
    request: HttpRequest, conversation: Conversation, *, seq: int
) -> HttpResponse:
    """Have a summary written, to be accepted, changed or dropped."""
    typed = _own_words(request, conversation)
    try:
        limits.admit_spending(conversation.owner_id)
        summary_proposals.plan(conversation, seq)
        claim = summary_proposals.start(conversation, seq, typed)
    except (actions.ActionError, CommandError) as error:
        values = {"conversation": conversation, "seq": seq, "typed": typed}
        values["error"] = str(error)
        return render(request, "chat/_compaction_preview.html", values)
    if claim:
        async_to_sync(tasks.start)(claim, summary_proposals.KIND, conversation.pk)
    return _proposal(request, conversation, summary_proposals.latest(conversation))


@require_GET
@private
@with_conversation
def proposal(
    request: HttpRequest, conversation: Conversation, *, seq: int
) -> HttpResponse:
    """How far the summary up to a message is; a dialog that waits is left alone."""
    job = summary_proposals.latest(conversation)
    if job is None or job.state == State.CANCELLED or job.values["seq"] != seq:
        return preview(request, uuid=conversation.uuid, seq=seq)
    if "wait" in request.GET and not job.is_finished:
        return HttpResponse(status=204)
    return _proposal(request, conversation, job)


def _proposal(
    request: HttpRequest, conversation: Conversation, job: Job
) -> HttpResponse:
    values = summary_proposals.describe(job, conversation)
    return render(request, "chat/_compaction_preview.html", values)


def _own_words(request: HttpRequest, conversation: Conversation) -> str:
    """What a person had made of the last proposal; the next one keeps it in sight."""
    signature, text = request.POST.get("signature", ""), request.POST.get("text", "")
    is_own = bool(text) and proposals.is_changed(conversation, signature, text)
    return text if is_own else request.POST.get("typed", "")


@require_POST
@private
@with_conversation
def estimate(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """What the settings in the form would do now; nothing is changed."""
    form = PolicyForm(request.POST)
    values: dict[str, Any] = {"form": form}
    if form.is_valid():
        values["estimate"] = proposals.estimate(
            conversation,
            Policy.load(form.cleaned_data["policy"]),
            open_from=lifecycle.open_from,
            context_window=providers.context_window(requests.model_of(conversation)),
        )
    return render(request, "chat/_estimate.html", values)


@require_GET
@private
@with_conversation
def summaries(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """The history of versions, newest first."""
    rows = conversation.summaries.order_by("-version").select_related("author")
    values = {"conversation": conversation, "summaries": rows[:MAX_VERSIONS]}
    return render(request, "chat/_history.html", values)


@require_GET
@private
@with_conversation
def diff(
    request: HttpRequest, conversation: Conversation, *, version: int
) -> HttpResponse:
    """What a version changed in those that it replaced, word by word."""
    summary = _summary(conversation, version)
    older = list(summary.folded_from.order_by("first_seq"))
    before = "\n\n".join(row.text for row in older)
    pieces = compare(before, summary.text) if older else []
    values = {"summary": summary, "older": older, "pieces": pieces}
    return render(request, "chat/_diff.html", values)


@require_GET
@private
@with_conversation
def edit(
    request: HttpRequest, conversation: Conversation, *, version: int
) -> HttpResponse:
    summary = _summary(conversation, version)
    values = {"conversation": conversation, "summary": summary}
    return render(request, "chat/_summary_edit.html", values)


@require_GET
@private
@with_conversation
def find(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """What did it forget? Where the model sees what was said about something."""
    form = SearchForm(request.GET)
    query = form.cleaned_data["q"] if form.is_valid() else ""
    found = search.find(conversation, query)
    values = {"conversation": conversation, "query": query.strip(), "found": found}
    return render(request, "chat/_found.html", values)


@require_GET
@private
@with_conversation
def saved(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    values = {"savings": savings.of(conversation)}
    return render(request, "chat/_savings.html", values)


@require_POST
@private
@with_conversation
def draft(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """The right pane with what is being typed, as if it were sent now."""
    text = request.POST.get("draft", "")[: settings.MESSAGE_MAX_CHARS]
    view = context_pane.model_view(conversation, draft=text)
    values = {"conversation": conversation, "context": view}
    return render(request, "chat/_context.html", values)


@require_GET
@private
@with_conversation
def moment(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """Both panes as they stood when a reply was asked for."""
    call = _call(request, conversation)
    values = {
        "conversation": conversation,
        "context": context_pane.model_view(conversation, reply=call.message.seq),
        "messages": messages_at(conversation, call),
    }
    return render(request, "chat/_moment.html", values)


@require_GET
@private
@with_conversation
def raw(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """The request's `messages` as they are sent, or were for a reply."""
    has_reply = bool(request.GET.get("reply"))
    call = _call(request, conversation) if has_reply else None
    reply = call.message.seq if call else None
    wire = export.context_of(conversation, reply)["messages"]
    text = json.dumps(wire, ensure_ascii=False, indent=2)
    return render(request, "chat/_raw.html", {"text": text})


def _call(request: HttpRequest, conversation: Conversation) -> ModelCall:
    form = NumberForm(request.GET)
    reply = form.cleaned_data["reply"] if form.is_valid() else None
    call = requests.reply_call(conversation, reply) if reply else None
    if call is None:
        raise Http404
    return call


def _summary(conversation: Conversation, version: int) -> Summary:
    return get_object_or_404(conversation.summaries, version=version)
