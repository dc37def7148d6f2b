"""What goes on for a conversation beside its replies, as lines on its page: summaries
that are being written or proposed, and how to end each.
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
class Line:
    """One piece of work: a sentence, where to look at it, how to end or drop it."""

    text: str
    is_running: bool
    end: str = ""  # an address
    end_label: str = ""
    look: str = ""  # an address
    is_error: bool = False


def lines(conversation: Conversation) -> list[Line]:
    job = summary_proposals.latest(conversation)
    shown = job and job.state != State.CANCELLED
    found = [_proposal(job, conversation)] if shown else []
    lease = conversation.compaction_lease_until
    if lease and lease > timezone.now():
        found.append(_compact(conversation))
    elif (
        conversation.compaction_due_at
        and conversation.compaction_due_at > timezone.now()
    ):
        found += _waiting(conversation)
    return found


def _waiting(conversation: Conversation) -> list[Line]:
    """Compaction that a limit has put off."""
    try:
        limits.admit_spending(conversation.owner_id)
    except CommandError as error:
        text = _("Earlier messages are not summarised now. %(why)s")
        return [Line(text % {"why": error.detail}, is_running=False)]
    return []


def values(conversation: Conversation, *, oob: bool = False) -> dict[str, Any]:
    """Those of the template of these lines; `oob`: they come with something else."""
    work = lines(conversation)
    working = any(line.is_running for line in work)
    return {
        "conversation": conversation,
        "work": work,
        "is_working": working,
        "oob": oob,
    }


def _compact(conversation: Conversation) -> Line:
    if conversation.compaction_due_at is None:
        text = _("Stopping as soon as the summary that is being written is done…")
        return Line(text, is_running=True)
    return Line(
        _("Summarising earlier messages…"),
        is_running=True,
        end=reverse("memory-stop", args=[conversation.uuid]),
        end_label=_("Stop"),
    )


def _proposal(job: Job, conversation: Conversation) -> Line:
    seq = job.values["seq"]
    if job.cancel_requested_at and not job.is_finished:
        text = _("Cancelling the summary up to #%(seq)s…")
        return Line(text % {"seq": seq}, is_running=True)
    texts = {
        State.DONE: _("A summary up to #%(seq)s is proposed."),
        State.FAILED: _("No summary up to #%(seq)s: %(why)s"),
    }
    text = texts.get(job.state, _("Writing a summary up to #%(seq)s…"))
    return Line(
        text % {"seq": seq, "why": _(job.error) if job.error else ""},
        is_running=not job.is_finished,
        end=reverse("memory-end-job", args=[conversation.uuid, job.pk]),
        end_label=_("Drop") if job.is_finished else _("Cancel"),
        look=reverse("memory-proposal", args=[conversation.uuid, seq]),
        is_error=job.state == State.FAILED,
    )
