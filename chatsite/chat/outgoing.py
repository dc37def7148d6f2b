"""What is sent to a model for a conversation: now, and for a reply of the past."""

from django.conf import settings

from chatsite.llm import providers
from memory import context
from memory.models import Conversation, ModelCall

from .models import Turn


def model_of(conversation: Conversation) -> str:
    return conversation.model or providers.default_model()


def limit_of(model: str) -> int:
    """Tokens that a request may have, so that the reply still fits the window."""
    return max(1, providers.context_window(model) - settings.REPLY_RESERVE)


def next_turn(conversation: Conversation) -> context.Built:
    """What would be sent now: the waiting message's context, or the view so far."""
    model = model_of(conversation)
    waiting = conversation.turns.filter(state__in=Turn.UNFINISHED).order_by("id")
    turn = waiting.select_related("user_message").first()
    newest = turn.user_message if turn else None
    limit = limit_of(model)
    return context.build(conversation, newest=newest, model=model, limit=limit)


def reply_call(conversation: Conversation, seq: int) -> ModelCall | None:
    """The request that reply `seq` came from."""
    calls = conversation.model_calls.filter(
        purpose=ModelCall.Purpose.REPLY, message__seq=seq
    )
    return calls.order_by("-id").first()
