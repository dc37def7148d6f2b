"""Asking for another reply, and ending all that a conversation waits for."""

from django.db import transaction
from django.utils.translation import gettext as _

from memory import transcript
from memory.models import Conversation

from ..errors import CommandError
from ..models import Turn
from .asking import get, requeue, stop, unfinished

State = Turn.State


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
    if turn.user_message.superseded_at or turn.user_message.deleted_at:
        raise CommandError("not_found", _("The message it would answer is gone."))
    if turn.reply:
        transcript.supersede(conversation, turn.reply.seq, turn.reply.seq)
    return requeue(conversation, turn)


def stop_all(conversation: Conversation) -> list[int]:
    """End what is queued; the running turns, which were asked to end."""
    # The queued ones first: the end of a running one starts the next.
    waiting = unfinished(conversation.pk).order_by("-pk")
    stopped = [stop(conversation, pk) for pk in waiting.values_list("pk", flat=True)]
    return [turn.pk for turn in stopped if turn.state == State.RUNNING]
