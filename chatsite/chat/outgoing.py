"""What is sent to a model for a conversation: now, and for a reply of the past."""

from django.conf import settings
from django.utils.timezone import now
from django.utils.translation import gettext as _
from langchain_core.messages import SystemMessage

from chatsite.llm import providers
from memory import context
from memory.engine.blank import is_blank
from memory.messages import to_langchain
from memory.models import Conversation, Message, ModelCall

from .errors import CommandError
from .models import Turn


def model_of(conversation: Conversation) -> str:
    return conversation.model or providers.default_model()


def limit_of(model: str) -> int:
    """Tokens that a request may have, so that the reply still fits the window."""
    return max(1, providers.context_window(model) - settings.REPLY_RESERVE)


def check_fits(conversation: Conversation, message: Message) -> None:
    """Refuse a message that its model could never take, whatever is left out beside
    it. Raises CommandError; the limit is named there."""
    room = providers.context_window(model_of(conversation))
    alone = [SystemMessage(context.system_prompt(conversation)), to_langchain(message)]
    tokens = context.counter(conversation)(alone)
    if tokens > room:
        text = _(
            "The message has about %(tokens)s tokens, with the instructions to the "
            "model; the model takes %(room)s. Shorten it or send it in parts."
        )
        values = {"tokens": f"{tokens:,}", "room": f"{room:,}"}
        raise CommandError("too_long", text % values)


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
    if is_blank(draft):
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
