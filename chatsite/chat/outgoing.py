"""What is sent to a model for a conversation: now, and for a reply of the past."""

from django.conf import settings
from django.utils.timezone import now

from chatsite.llm import providers
from memory import context
from memory.models import Conversation, Message, ModelCall

from .models import Turn


def model_of(conversation: Conversation) -> str:
    return conversation.model or providers.default_model()


def limit_of(model: str) -> int:
    """Tokens that a request may have, so that the reply still fits the window."""
    return max(1, providers.context_window(model) - settings.REPLY_RESERVE)


def next_turn(conversation: Conversation, draft: str = "") -> context.Built:
    """What would be sent now: the context of the waiting message, else of the draft,
    else the view so far."""
    model = model_of(conversation)
    waiting = conversation.turns.filter(state__in=Turn.UNFINISHED).order_by("id")
    turn = waiting.select_related("user_message").first()
    newest = turn.user_message if turn else _unsent(conversation, draft)
    limit = limit_of(model)
    return context.build(conversation, newest=newest, model=model, limit=limit)


def _unsent(conversation: Conversation, draft: str) -> Message | None:
    if not draft.strip():
        return None
    return Message(
        conversation=conversation,
        seq=conversation.next_seq,
        role=Message.Role.USER,
        text=draft,
        created_at=now(),
    )


def reply_call(conversation: Conversation, seq: int) -> ModelCall | None:
    """The request that reply `seq` came from."""
    calls = conversation.model_calls.filter(
        purpose=ModelCall.Purpose.REPLY, message__seq=seq
    )
    return calls.order_by("-id").first()
