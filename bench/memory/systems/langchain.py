"""LangChain's `SummarizationMiddleware` in an agent made by `create_agent`."""

from collections.abc import Callable, Sequence
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware
from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from memory.engine.tokens import count_tokens

from ..models import Write
from .base import System

CONFIG: Any = {"configurable": {"thread_id": "1"}}

# The size at which a window is compacted, for these messages and the tokens of the
# summary before them.
FindSize = Callable[[Sequence[BaseMessage], int], int]


class AgentSystem(System):
    """Any memory that is a middleware."""

    def __init__(self, write: Write, **known: Any) -> None:
        super().__init__(write, **known)
        self.saver = InMemorySaver()

    def use(self, middleware: AgentMiddleware) -> None:
        self.agent = create_agent(
            self.chat, middleware=[middleware], checkpointer=self.saver
        )

    def take_turn(self, message: HumanMessage) -> None:
        self.agent.invoke({"messages": [message]}, CONFIG)


class LangChain(AgentSystem):
    """`options` are those of the middleware."""

    def __init__(self, write: Write, **options: Any) -> None:
        super().__init__(write)
        self.options = options
        self.use(SummarizationMiddleware(self.summarizer, **options))


class AdaptiveLangChain(LangChain):
    """LangChain with a size that follows the conversation: the middleware counts its
    summary among the messages, so the summary's tokens come on top.
    """

    def __init__(self, write: Write, *, find_size: FindSize, **options: Any) -> None:
        super().__init__(write, **options)
        self.find_size = find_size

    def take_turn(self, message: HumanMessage) -> None:
        known = self.agent.get_state(CONFIG).values.get("messages", [])
        summaries = [each for each in known if is_summary(each)]
        window = [each for each in (*known, message) if not is_summary(each)]
        tokens = count_tokens(summaries) if summaries else 0
        trigger = "tokens", self.find_size(window, tokens) + tokens
        options = self.options | {"trigger": trigger}
        self.use(SummarizationMiddleware(self.summarizer, **options))
        super().take_turn(message)


def is_summary(message: BaseMessage) -> bool:
    return message.additional_kwargs.get("lc_source") == "summarization"
