"""The contestants: an agent with each memory, with the settings of its
documentation.
"""

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from deepagents.backends import FilesystemBackend
from deepagents.middleware.summarization import create_summarization_middleware
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langmem.short_term import RunningSummary, summarize_messages

from .play import Agent, make_windowpane

# The shares of the model's window in LangChain's documentation.
TRIGGER, KEEP = ("fraction", 0.8), ("fraction", 0.3)
LANGMEM_SUMMARY = 256

Models = tuple[BaseChatModel, BaseChatModel]


def make_langchain(
    models: Models, tools: Sequence[BaseTool], window: int, **options: Any
) -> Agent:
    model, summarizer = models
    memory = SummarizationMiddleware(summarizer, trigger=TRIGGER, keep=KEEP, **options)
    return _make(model, tools, memory)


def make_deepagents(models: Models, tools: Sequence[BaseTool], window: int) -> Agent:
    """The factory's settings. No model here reads the file that it writes."""
    model, summarizer = models
    folder = tempfile.mkdtemp()
    backend = FilesystemBackend(root_dir=folder, virtual_mode=True)
    return _make(model, tools, create_summarization_middleware(summarizer, backend))


class State(MessagesState):
    summary: RunningSummary | None


def make_langmem(models: Models, tools: Sequence[BaseTool], window: int) -> Agent:
    """`summarize_messages` before each request, as in its documentation."""
    model, summarizer = models
    bound = model.bind_tools(tools)

    def call_model(state: State) -> dict[str, Any]:
        result = summarize_messages(
            state["messages"],
            running_summary=state.get("summary"),
            model=summarizer.bind(max_tokens=LANGMEM_SUMMARY),
            max_tokens=int(window * TRIGGER[1]),
            max_summary_tokens=LANGMEM_SUMMARY,
        )
        update: dict[str, Any] = {"messages": [bound.invoke(result.messages)]}
        if result.running_summary:
            update["summary"] = result.running_summary
        return update

    graph = StateGraph(State)
    graph.add_node("call_model", call_model)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "call_model")
    graph.add_conditional_edges("call_model", tools_condition)
    graph.add_edge("tools", "call_model")
    return Agent(graph.compile(checkpointer=InMemorySaver()))


def _make(
    model: BaseChatModel, tools: Sequence[BaseTool], memory: AgentMiddleware
) -> Agent:
    return Agent(
        create_agent(model, tools, middleware=[memory], checkpointer=InMemorySaver())
    )


CONTESTANTS: dict[str, Callable[..., Agent]] = {
    "Windowpane": make_windowpane,
    "LangChain": make_langchain,
    "LangChain, no trim": partial(make_langchain, trim_tokens_to_summarize=None),
    "LangMem": make_langmem,
    "Deep Agents": make_deepagents,
}
