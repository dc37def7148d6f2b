"""What an experiment is played from: the conversation as it stands, read once."""

from dataclasses import dataclass
from datetime import datetime

from langchain_core.messages import BaseMessage

from chatsite.llm import providers
from chatsite.turns import requests
from memory import context
from memory.models import Conversation

from ..models import Experiment
from . import steps


@dataclass(frozen=True, slots=True)
class Material:
    """The messages that nobody took out, up to the one that was last at the start."""

    conversation: Conversation
    messages: list[BaseMessage]
    # When a person pinned them, by number.
    pins: dict[int, datetime]
    system_prompt: str
    context_window: int
    # Tokens that a request may have.
    limit: int

    @property
    def name(self) -> str:
        return steps.name_of(int(message.id or 0) for message in self.messages)


def read(experiment: Experiment) -> Material:
    conversation = Conversation.objects.get(pk=experiment.conversation_id)
    rows = list(context.visible(conversation).filter(seq__lte=experiment.last_seq))
    model = requests.model_of(conversation)
    return Material(
        conversation=conversation,
        messages=[row.to_langchain() for row in rows],
        pins={row.seq: row.pinned_at for row in rows if row.pinned_at},
        system_prompt=context.system_prompt(conversation),
        context_window=providers.context_window(model),
        limit=requests.limit_of(model),
    )
