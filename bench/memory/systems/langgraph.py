"""The LangGraph tutorial "chatbot with message summarization", as a graph.

Its numbers are the tutorial's; another rule for when and how much can be passed in.
"""

from collections.abc import Callable
from typing import Any

from langchain_core.messages import (
    AnyMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

from memory.engine.tokens import count_tokens

from ..models import SUMMARY_TOKENS, Write
from .base import System
from .langchain import FindSize

CONFIG: Any = {"configurable": {"thread_id": "1"}}
EXTEND = "Extend the summary by taking into account the new messages above:"

# How many of the newest messages stay; None: nothing is to be summarised.
Keep = Callable[[list[AnyMessage]], int | None]


class State(MessagesState):
    summary: str


def keep_two_of_more_than_six(messages: list[AnyMessage]) -> int | None:
    return 2 if len(messages) > 6 else None


def keep_tokens(find_size: FindSize, keep: int) -> Keep:
    """Keep as many tokens as the other systems."""

    def choose(messages: list[AnyMessage]) -> int | None:
        # The state's summary is no message; how long it is changes little.
        if count_tokens(messages) < find_size(messages, SUMMARY_TOKENS):
            return None
        kept = len(messages)
        while kept > 1 and count_tokens(messages[-kept:]) > keep:
            kept -= 1
        return kept

    return choose


class LangGraphTutorial(System):
    def __init__(self, write: Write, keep: Keep = keep_two_of_more_than_six) -> None:
        super().__init__(write)
        self.keep = keep
        graph = StateGraph(State)
        graph.add_node("conversation", self.call_model)
        graph.add_node("summarize", self.summarize)
        graph.add_edge(START, "conversation")
        graph.add_conditional_edges("conversation", self.choose)
        graph.add_edge("summarize", END)
        self.graph = graph.compile(checkpointer=InMemorySaver())

    def take_turn(self, message: HumanMessage) -> None:
        self.graph.invoke({"messages": [message]}, CONFIG)

    def call_model(self, state: State) -> dict[str, Any]:
        messages = state["messages"]
        if summary := state.get("summary"):
            earlier = SystemMessage(f"Summary of conversation earlier: {summary}")
            messages = [earlier, *messages]
        return {"messages": [self.chat.invoke(messages)]}

    def choose(self, state: State) -> str:
        return END if self.keep(state["messages"]) is None else "summarize"

    def summarize(self, state: State) -> dict[str, Any]:
        instruction = "Create a summary of the conversation above:"
        if summary := state.get("summary"):
            so_far = f"This is summary of the conversation to date: {summary}"
            instruction = f"{so_far}\n\n{EXTEND}"
        messages = state["messages"]
        reply = self.summarizer.invoke([*messages, HumanMessage(instruction)])
        kept = self.keep(messages) or 0
        removed = [RemoveMessage(id=each.id) for each in messages[:-kept]]
        return {"summary": reply.text, "messages": removed}
