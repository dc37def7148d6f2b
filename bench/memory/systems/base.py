"""The interface of a memory in the bench: play a turn, then let time pass."""

from collections.abc import Callable
from datetime import datetime

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from ..models import Log, ReplyModel, SummaryModel, Write

# A safe guess for an unknown model; the site makes the same one.
CONTEXT_WINDOW = 32_000


class System:
    """A memory in one conversation."""

    def __init__(self, write: Write, *, context_window: int = CONTEXT_WINDOW) -> None:
        self.log: Log = []
        profile = {"max_input_tokens": context_window}
        self.chat = ReplyModel(log=self.log, profile=profile)
        self.summarizer = SummaryModel(log=self.log, write=write, profile=profile)

    def play(self, message: HumanMessage, reply: AIMessage) -> None:
        """One turn: whatever the memory does, the chat model answers with `reply`."""
        self.chat.reply = reply
        self.take_turn(message)

    def take_turn(self, message: HumanMessage) -> None:
        raise NotImplementedError

    def recall(self, question: str) -> list[BaseMessage]:
        """Return the messages of a request with this question beside those of every
        request; they have the ids of the messages that they quote.
        """
        return []

    def rest(self, until: datetime | None) -> None:
        """The time between a reply and the next message."""


Make = Callable[[Write], System]
