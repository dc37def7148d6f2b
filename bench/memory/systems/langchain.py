"""LangChain's `SummarizationMiddleware` in an agent made by `create_agent`."""

from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from ..models import Write
from .base import System

CONFIG: Any = {"configurable": {"thread_id": "1"}}


class AgentSystem(System):
    """Any memory that is a middleware."""

    def use(self, middleware: AgentMiddleware) -> None:
        self.agent = create_agent(
            self.chat, middleware=[middleware], checkpointer=InMemorySaver()
        )

    def take_turn(self, message: HumanMessage) -> None:
        self.agent.invoke({"messages": [message]}, CONFIG)


class LangChain(AgentSystem):
    """`options` are those of the middleware."""

    def __init__(self, write: Write, **options: Any) -> None:
        super().__init__(write)
        self.use(SummarizationMiddleware(self.summarizer, **options))
