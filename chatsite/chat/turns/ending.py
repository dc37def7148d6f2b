"""The one way in which a turn ends: its last state, its reply, its number."""

from django.db import models
from django.db.models.functions import Now

from memory import folding, transcript
from memory.models import ModelCall

from ..models import Turn


def end(
    fenced: models.QuerySet[Turn],
    turn: Turn,
    state: str,
    *,
    error: str = "",
    reasoning: str = "",
) -> bool:
    """Move a turn to its last state and store its reply, if the fence still holds."""
    if not fenced.update(
        state=state,
        text=turn.text,
        call=turn.call_id,
        error=error,
        finished_at=Now(),
        lease_until=None,
    ):
        return False
    if turn.text:
        reply = transcript.append_reply(
            turn.conversation,
            seq=turn.reply_seq,
            text=turn.text,
            reasoning=reasoning,
        )
        Turn.objects.filter(pk=turn.pk).update(reply=reply)
        ModelCall.objects.filter(pk=turn.call_id).update(message=reply)
    else:
        transcript.give_back(turn.conversation_id, turn.reply_seq)
    folding.mark_due(turn.conversation_id)
    return True
