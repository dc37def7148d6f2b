"""The background work of a conversation, as its page shows it.

These are summaries that are being written or proposed, with a way to end each.
"""

from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from chatsite.protocol.errors import CommandError
from chatsite.turns import limits
from chatsite.turns.models import Job
from memory.models import Conversation

from . import summary_proposals

State = Job.State


@dataclass(frozen=True, slots=True)
class Activity:
    """A sentence about some work, and the URLs that show, end or drop that work."""

    text: str
    is_running: bool = False
    is_error: bool = False
    show_url: str = ""
    end_url: str = ""
    end_label: str = ""


def template_values(conversation: Conversation, *, oob: bool = False) -> dict[str, Any]:
    """Return the values of chat/_activities.html; `oob`: swap out of band."""
    found = list_activities(conversation)
    return {
        "conversation": conversation,
        "activities": found,
        "is_working": any(activity.is_running for activity in found),
        "oob": oob,
    }


def list_activities(conversation: Conversation) -> list[Activity]:
    found = []
    job = summary_proposals.find_latest_proposal(conversation)
    if job and job.state != State.CANCELLED:
        found.append(_describe_proposal(job, conversation))
    lease, due_at = conversation.compaction_lease_until, conversation.compaction_due_at
    if lease and lease > timezone.now():
        if due_at is None:
            text = _("Stopping when the current summary is finished…")
            found.append(Activity(text, is_running=True))
        else:
            found.append(
                Activity(
                    _("Summarising earlier messages…"),
                    is_running=True,
                    end_url=reverse("memory-stop", args=[conversation.uuid]),
                    end_label=_("Stop"),
                )
            )
    elif due_at and due_at > timezone.now():
        try:
            limits.admit_spending(conversation.owner_id)
        except CommandError as error:
            text = _("Earlier messages are not summarised now. %(why)s")
            found.append(Activity(text % {"why": error.detail}))
    return found


def _describe_proposal(job: Job, conversation: Conversation) -> Activity:
    seq = job.values["seq"]
    if job.cancel_requested_at and not job.is_finished:
        text = _("Cancelling the summary up to #%(seq)s…")
        return Activity(text % {"seq": seq}, is_running=True)
    texts = {
        State.DONE: _("A draft summary up to #%(seq)s is ready."),
        State.FAILED: _("No summary up to #%(seq)s: %(why)s"),
    }
    text = texts.get(job.state, _("Writing a summary up to #%(seq)s…"))
    return Activity(
        text % {"seq": seq, "why": _(job.error) if job.error else ""},
        is_running=not job.is_finished,
        is_error=job.state == State.FAILED,
        show_url=reverse("memory-proposal", args=[conversation.uuid, seq]),
        end_url=reverse("memory-end-job", args=[conversation.uuid, job.pk]),
        end_label=_("Discard") if job.is_finished else _("Cancel"),
    )
