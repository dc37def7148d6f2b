"""LangMem's short-term memory: `summarize_messages` in a graph, as its docs show."""

from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langmem.short_term import RunningSummary, summarize_messages

from ..models import Write
from .base import System

CONFIG: Any = {"configurable": {"thread_id": "1"}}


class State(MessagesState):
    summary: RunningSummary | None


class LangMem(System):
    """`options` are those of `summarize_messages`."""

    def __init__(self, write: Write, **options: Any) -> None:
        super().__init__(write)
        self.options = options
        self.model = self.summarizer.bind(max_tokens=options["max_summary_tokens"])
        graph = StateGraph(State)
        graph.add_node("call_model", self.call_model)
        graph.add_edge(START, "call_model")
        self.graph = graph.compile(checkpointer=InMemorySaver())

    def take_turn(self, message: HumanMessage) -> None:
        self.graph.invoke({"messages": [message]}, CONFIG)

    def call_model(self, state: State) -> dict[str, Any]:
        result = summarize_messages(
            state["messages"],
            running_summary=state.get("summary"),
            model=self.model,
            **self.options,
        )
        update: dict[str, Any] = {"messages": [self.chat.invoke(result.messages)]}
        if result.running_summary:
            update["summary"] = result.running_summary
        return update
