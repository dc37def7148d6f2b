"""The two models every system gets: one that replies, one that summarises.

Both write into one log, so that the order of all requests of a turn is known.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

SUMMARY_TOKENS = 256

# Writes a summary for a request, in at most so many tokens.
Write = Callable[[Sequence[BaseMessage], int], str]


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request of the chat model."""

    prompt: list[BaseMessage]


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """A request of the summariser, and its reply."""

    request: list[BaseMessage]
    text: str


Log = list[ChatRequest | SummaryRequest]


def hash_requests(log: Iterable[ChatRequest | SummaryRequest]) -> list[str]:
    """The SHA-256 of what each request of a log said, in their order: two runs that
    give the same ones sent the same."""
    sent = (e.prompt if isinstance(e, ChatRequest) else e.request for e in log)
    return [hashlib.sha256(_to_json(each).encode()).hexdigest() for each in sent]


def _to_json(request: Sequence[BaseMessage]) -> str:
    return json.dumps([(message.type, message.text) for message in request])


class ReplyModel(BaseChatModel):
    """A model that returns the given reply."""

    log: Any
    reply: AIMessage = AIMessage("")

    @property
    def _llm_type(self) -> str:
        return "recorded"

    def _generate(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> ChatResult:
        self.log.append(ChatRequest(list(messages)))
        return ChatResult(generations=[ChatGeneration(message=self.reply)])


class SummaryModel(BaseChatModel):
    """Lets `write` answer; `bind(max_tokens=...)` caps it as it would a real model."""

    log: Any
    write: Any

    @property
    def _llm_type(self) -> str:
        return "summariser"

    def _generate(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> ChatResult:
        text = self.write(messages, kwargs.get("max_tokens", SUMMARY_TOKENS))
        self.log.append(SummaryRequest(list(messages), text))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])
