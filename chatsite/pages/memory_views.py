"""Views of the memory: previews, drafts of summaries, versions and their differences.

Also search, snapshots, and work in the background.
"""

import json

from asgiref.sync import async_to_sync
from django.conf import settings
from django.db.models import Sum
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _

from chatsite.accounts.access import Values, conversation_fragment
from chatsite.features.attachments import uploads
from chatsite.jobs import activity, queue, summary_proposals, tasks
from chatsite.llm import providers
from chatsite.protocol import events
from chatsite.protocol.errors import CommandError
from chatsite.turns import lifecycle, limits, requests
from chatsite.turns.models import Job
from memory import actions, context, transcript, versions
from memory.compaction import lease, proposals
from memory.engine.exceptions import PolicyError
from memory.engine.policy import Policy, parse_focus
from memory.images.image_source import without_bytes
from memory.models import Change, Conversation
from memory.transcript import TextError

from .diff import diff_words as compare
from .forms import PolicyForm, SearchForm
from .presenters import context_pane, search, snapshot
from .views import context_values, find_context, read_number

MAX_VERSIONS = 200


@conversation_fragment("chat/_compaction_preview.html")
def show_preview(
    request: HttpRequest, conversation: Conversation, *, seq: int
) -> Values:
    """Show what compaction up to a message would do; no model is called yet."""
    try:
        plan = summary_proposals.plan_proposal_here(conversation, seq)
    except actions.ActionError as error:
        return {"seq": seq, "error": str(error)}
    return {"seq": seq, "plan": plan}


@conversation_fragment("chat/_compaction_preview.html", "POST")
def request_proposal(
    request: HttpRequest, conversation: Conversation, *, seq: int
) -> Values:
    """Have a summary written, to be accepted, changed or discarded."""
    # What the user has made of the last proposal stays in sight beside the next.
    signature, text = request.POST.get("signature", ""), request.POST.get("text", "")
    is_own = bool(text) and proposals.is_changed(conversation, signature, text)
    typed = text if is_own else request.POST.get("typed", "")
    focus = request.POST.get("focus", "").strip()
    try:
        limits.admit_spending(conversation.owner_id)
        focus = parse_focus(focus)
        summary_proposals.plan_proposal_here(conversation, seq)
        claim = summary_proposals.start_proposal(conversation, seq, typed, focus)
    except (actions.ActionError, CommandError, PolicyError) as error:
        why = error.render(_) if isinstance(error, PolicyError) else str(error)
        return {"seq": seq, "typed": typed, "error": why, "focus": focus}
    if claim:
        async_to_sync(tasks.start_job)(claim, summary_proposals.KIND, conversation.pk)
    job = summary_proposals.find_latest_proposal(conversation)
    return summary_proposals.describe_job(job, conversation)


@conversation_fragment("chat/_compaction_preview.html")
def show_proposal(
    request: HttpRequest, conversation: Conversation, *, seq: int
) -> Values:
    """Show the progress of the summary up to a message, except in a waiting dialog."""
    job = summary_proposals.find_latest_proposal(conversation)
    if job is None or job.state == Job.State.CANCELLED or job.values["seq"] != seq:
        return show_preview(request, uuid=conversation.uuid, seq=seq)
    if "wait" in request.GET and not job.is_finished:
        return HttpResponse(status=204)
    return summary_proposals.describe_job(job, conversation)


@conversation_fragment("chat/_activities.html")
def show_activity(request: HttpRequest, conversation: Conversation) -> Values:
    return activity.template_values(conversation)


@conversation_fragment("chat/_activities.html", "POST")
def end_job(request: HttpRequest, conversation: Conversation, *, job: int) -> Values:
    """Cancel a job that goes on; discard the result of one that has ended."""
    row = get_object_or_404(conversation.jobs, pk=job)
    if row.is_finished:
        row.delete()
    else:
        queue.JOBS.cancel_rows(conversation.jobs.filter(pk=row.pk))
    async_to_sync(tasks.tell_pages)(row.kind, conversation.pk, "cancelled")
    return activity.template_values(conversation)


@conversation_fragment("chat/_activities.html", "POST")
def stop_compaction(request: HttpRequest, conversation: Conversation) -> Values:
    """End the compaction that runs, when the summary that it writes is done."""
    lease.stop_after_step(conversation.pk)
    conversation.changes.create(action=Change.Action.END_SUMMARY)
    conversation.refresh_from_db()
    async_to_sync(events.publish_event)(
        conversation.pk, events.JobState("fold", "stopping")
    )
    return activity.template_values(conversation)


@conversation_fragment("chat/_policy.html")
def show_policy(request: HttpRequest, conversation: Conversation) -> Values:
    """Show the memory settings; with a `preset`, those of the preset alone, unsaved."""
    preset = request.GET.get("preset", "")
    return {"policy_form": PolicyForm.for_conversation(conversation, preset=preset)}


@conversation_fragment("chat/_policy_estimate.html", "POST")
def show_estimate(request: HttpRequest, conversation: Conversation) -> Values:
    """Show what the settings in the form would do now; nothing is changed."""
    form = PolicyForm(request.POST)
    if not form.is_valid():
        return {"form": form}
    estimate = proposals.estimate_compaction(
        conversation,
        Policy.load(form.cleaned_data["policy"]),
        open_from=lifecycle.open_from,
        context_window=providers.context_window(requests.model_of(conversation)),
    )
    return {"form": form, "estimate": estimate}


@conversation_fragment("chat/_summary_history.html")
def show_summaries(request: HttpRequest, conversation: Conversation) -> Values:
    """Show the versions, newest first, and what summarising again would drop."""
    rows = conversation.summaries.order_by("-version").select_related("author")
    active = versions.active_summaries(conversation)
    covered = context.visible_messages(conversation).filter(
        seq__lte=versions.last_covered(active)
    )
    tokens = covered.aggregate(sum=Sum("tokens"))["sum"] or 0
    shown = list(rows[:MAX_VERSIONS])
    return {
        "summaries": shown,
        "hidden_since": versions.hidden_since(conversation, shown),
        # No model wrote these.
        "edited": [row for row in active if row.is_by_hand],
        "tokens": round(tokens * conversation.token_ratio),
    }


@conversation_fragment("chat/_summary_diff.html")
def show_diff(
    request: HttpRequest, conversation: Conversation, *, version: int
) -> Values:
    """Show what a version changed in those that it replaced, word by word."""
    summary = get_object_or_404(conversation.summaries, version=version)
    older = list(summary.folded_from.order_by("first_seq"))
    before = "\n\n".join(row.text for row in older)
    pieces = compare(before, summary.text) if older else []
    return {"summary": summary, "older": older, "pieces": pieces}


@conversation_fragment("chat/_summary_edit.html")
def edit_summary(
    request: HttpRequest, conversation: Conversation, *, version: int
) -> Values:
    summary = get_object_or_404(conversation.summaries, version=version)
    return {"summary": summary, "in_place": is_in_place(request)}


def is_in_place(request: HttpRequest) -> bool:
    """Return whether a form is shown where its text stands, and not in the dialog."""
    return request.htmx.target != "dialog-body"


@conversation_fragment("chat/_system_prompt_edit.html")
def edit_prompt(request: HttpRequest, conversation: Conversation) -> Values:
    most = transcript.SYSTEM_PROMPT_CHARS
    values = {"site_prompt": settings.SYSTEM_PROMPT, "max_chars": most}
    return values | {"in_place": is_in_place(request)}


@conversation_fragment("chat/_search_results.html")
def search_memory(request: HttpRequest, conversation: Conversation) -> Values:
    """Show where the model sees the messages that a query finds."""
    form = SearchForm(request.GET)
    query = form.cleaned_data["q"].strip() if form.is_valid() else ""
    found = search.search_conversation(conversation, query)
    return {
        "query": query,
        "found": found[: search.MAX_HITS],
        "has_more": len(found) > search.MAX_HITS,
        "summaries": [] if query else versions.active_summaries(conversation),
    }


def draw_draft(request: HttpRequest, conversation: Conversation) -> Values:
    """Return the right pane of the next request, with the draft of a form."""
    text = request.POST.get("draft", "")[: settings.MESSAGE_MAX_CHARS]
    try:
        ids = uploads.read_upload_ids(request.POST.get("files", "").split())
        files = uploads.find_files(conversation.owner_id, ids)
    except TextError:
        files = []  # sending says why
    return {"context": context_pane.model_view(conversation, draft=text, files=files)}


# The right pane with what is being typed, as if it were sent now.
show_draft = conversation_fragment("chat/_context.html", "POST")(draw_draft)


@conversation_fragment("chat/_snapshot.html")
def show_snapshot(request: HttpRequest, conversation: Conversation) -> Values:
    """Both panes as they were when a reply was requested."""
    if read_number(request, "reply") is None:
        raise Http404
    values = context_values(request, conversation)
    call = values["context"].call
    return values | {"messages": snapshot.messages_at(conversation, call)}


@conversation_fragment("chat/_request_json.html")
def show_raw(request: HttpRequest, conversation: Conversation) -> Values:
    """Show the `messages` and `tools` of a past reply's request, or of the next.

    Of the Responses API its `input` instead, as it leaves.
    """
    found = find_context(request, conversation)
    name = "input" if "input" in found else "messages"
    shown = without_bytes(found[name])
    if found["tools"] or name == "input":
        shown = {"tools": found["tools"], name: shown}
    return {"text": json.dumps(shown, ensure_ascii=False, indent=2)}
