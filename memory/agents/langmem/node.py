"""LangMem's node for a graph of LangGraph."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import RemoveMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from .options import Options
from .summarization import SummarizationResult, Thread


@dataclass(kw_only=True, eq=False, repr=False)
class SummarizationNode(Options, Runnable[Any, dict[str, Any]]):
    """A node of a LangGraph graph that calls `summarize_messages`.

    It reads `input_messages_key` and `context` of the state, and writes
    `output_messages_key` and `context["running_summary"]`. With one key for both, the
    messages of the state are overwritten. The other keywords are those of
    `Options`.
    """

    input_messages_key: str = "messages"
    output_messages_key: str = "summarized_messages"
    name: str = "summarization"

    def invoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        context, call = self._open(input)
        return self._update(context, call.run())

    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        context, call = self._open(input)
        return self._update(context, await call.arun())

    def _open(self, state: Any) -> tuple[dict[str, Any], Thread]:
        """Return the context of a state (a dict or an object), and the thread."""
        values = state if isinstance(state, Mapping) else getattr(state, "__dict__", {})
        messages = values.get(self.input_messages_key)
        if messages is None:
            raise ValueError(
                f"Missing required field `{self.input_messages_key}` in the input."
            )
        context = values.get("context") or {}
        return context, Thread(messages, context.get("running_summary"), self)

    def _update(
        self, context: dict[str, Any], result: SummarizationResult
    ) -> dict[str, Any]:
        if result.running_summary is None:
            return {self.output_messages_key: result.messages}
        messages = result.messages
        if self.input_messages_key == self.output_messages_key:
            messages = [RemoveMessage(REMOVE_ALL_MESSAGES), *messages]
        return {
            self.output_messages_key: messages,
            "context": {**context, "running_summary": result.running_summary},
        }
