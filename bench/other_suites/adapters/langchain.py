"""An adapter for LangChain's tests of `langchain.agents.middleware.summarization`.

They call `before_model` and look at the update of the state that it returns. Here the
state is never changed: the request is given to them in the form of that update.
"""

from typing import Any

from langchain.agents.middleware import summarization as original
from langchain.agents.middleware.types import AgentState, ModelRequest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from memory.agents import langchain
from memory.agents.stores import InMemoryStore
from memory.agents.summarizers import find_window

__all__ = ["SummarizationMiddleware"]

SUMMARY = "Here is a summary of the conversation to date:\n\n"


def __getattr__(name: str) -> Any:
    """Return the library's own object for other names."""
    return getattr(original, name)


class SummarizationMiddleware(langchain.SummarizationMiddleware):
    """The class, with LangChain's hooks."""

    def before_model(self, state: AgentState, runtime: Any) -> dict[str, Any] | None:
        sent: list[ModelRequest] = []

        def handler(request: ModelRequest) -> AIMessage:
            sent.append(request)
            return AIMessage("")

        self.wrap_model_call(self._request(state), handler)
        return to_update(sent[0], state)

    async def abefore_model(
        self, state: AgentState, runtime: Any
    ) -> dict[str, Any] | None:
        sent: list[ModelRequest] = []

        async def handler(request: ModelRequest) -> AIMessage:
            sent.append(request)
            return AIMessage("")

        await self.awrap_model_call(self._request(state), handler)
        return to_update(sent[0], state)

    def _get_profile_limits(self) -> int | None:
        # A test of what is public has it return None.
        return find_window(self.model)

    def _request(self, state: AgentState) -> ModelRequest:
        # LangChain's class remembers nothing between its calls.
        self.store = self._compactor.store = InMemoryStore()
        return ModelRequest(model=self.model, messages=state["messages"], state=state)


def to_update(sent: ModelRequest, state: AgentState) -> dict[str, Any] | None:
    """Return the update that LangChain's class returns for the messages of a request;
    None where they have no summary.
    """
    places = [
        place
        for place, message in enumerate(sent.messages)
        if message.additional_kwargs.get("lc_source") == "summarization"
        and message not in state["messages"]
    ]
    if not places:
        return None
    shown = sent.messages[places[0]]
    text = shown.text.partition(">")[2].rpartition("</summary>")[0]
    summary = HumanMessage(SUMMARY + text, additional_kwargs=shown.additional_kwargs)
    kept = sent.messages[places[0] + 1 :]
    return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), summary, *kept]}
