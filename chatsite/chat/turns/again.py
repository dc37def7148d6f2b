"""Asking for another reply, and ending all that a conversation waits for."""

from django.db import transaction
from django.db.models.functions import Coalesce, Now
from django.utils.translation import gettext as _

from memory import transcript
from memory.models import Conversation

from ..errors import CommandError
from ..models import Turn
from .asking import check_answerable, get, requeue, stop, unfinished
from .ending import end

State = Turn.State
# Why a turn was cancelled.
MESSAGE_DELETED = "message_deleted"


@transaction.atomic
def regenerate(conversation: Conversation, turn_id: int) -> Turn:
    """Queue the latest turn for another reply; the one it has stays, superseded."""
    transcript.lock(conversation)
    turn = get(conversation, turn_id)
    if not turn.is_finished:
        raise CommandError(
            "busy", _("The reply is still being written. Stop it first.")
        )
    if conversation.turns.filter(pk__gt=turn.pk).exists():
        raise CommandError(
            "not_latest",
            _("Only the latest reply can be written anew; branch from an older one."),
        )
    check_answerable(turn)
    if turn.reply:
        transcript.supersede(conversation, turn.reply.seq, turn.reply.seq)
    return requeue(conversation, turn)


def stop_all(conversation: Conversation) -> list[int]:
    """End what is queued; the running turns, which were asked to end."""
    # The queued ones first: the end of a running one starts the next.
    waiting = unfinished(conversation.pk).order_by("-pk")
    stopped = [stop(conversation, pk) for pk in waiting.values_list("pk", flat=True)]
    return [turn.pk for turn in stopped if turn.state == State.RUNNING]


@transaction.atomic
def fence(conversation: Conversation) -> list[int]:
    """End every unfinished turn now; what runs one of them can write nothing more. The
    turns that were running.

    Raises Conversation.DoesNotExist when the conversation is gone.
    """
    transcript.lock(conversation)
    open_turns = list(unfinished(conversation.pk).select_related("conversation"))
    # The last one first, so that each gives the number of its reply back.
    for turn in reversed(open_turns):
        row = Turn.objects.filter(pk=turn.pk, state__in=Turn.UNFINISHED)
        end(row, turn, State.STOPPED)
    return [turn.pk for turn in open_turns if turn.state == State.RUNNING]


@transaction.atomic
def cancel_unanswerable(conversation: Conversation) -> list[int]:
    """Cancel the turns whose message was deleted: a queued one now, a running one as
    soon as its runner hears of it. Which they were.

    Call it inside the transaction that locked the conversation.
    """
    found = unfinished(conversation.pk).select_related("conversation")
    gone = list(found.filter(user_message__deleted_at__isnull=False))
    for turn in reversed(gone):
        row = Turn.objects.filter(pk=turn.pk)
        queued = row.filter(state=State.QUEUED)
        if not end(queued, turn, State.STOPPED, error=MESSAGE_DELETED):
            row.filter(state=State.RUNNING).update(
                cancel_requested_at=Coalesce("cancel_requested_at", Now()),
                error=MESSAGE_DELETED,
            )
    return [turn.pk for turn in gone]
