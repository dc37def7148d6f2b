"""The context that a tool gets, made from the row of its call.

A tool gets it when it is called, and when it is asked for a late result.
"""

from chatsite.features.tools.context import CallContext
from chatsite.features.tools.models import ToolCall

# The related rows that of() reads.
RELATED = ("conversation__owner__preferences", "turn__user_message")


def of(call: ToolCall) -> CallContext:
    conversation = call.conversation
    preferred = getattr(conversation.owner, "preferences", None)
    return CallContext(
        conversation_id=conversation.pk,
        turn_id=call.turn_id,
        call_id=call.call_id,
        user_id=conversation.owner_id,
        idempotency_key=str(call.idempotency_key),
        asked_seq=call.turn.user_message.seq,
        time_zone=preferred.time_zone if preferred else "",
    )
