"""LangMem's node for a graph of LangGraph."""

from collections.abc import Mapping
from typing import Any

from langchain_core.language_models import LanguageModelLike
from langchain_core.messages import RemoveMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from ...engine.tokens import TokenCounter
from ..failures import OnFailure
from .options import (
    DEFAULT_EXISTING_SUMMARY_PROMPT,
    DEFAULT_FINAL_SUMMARY_PROMPT,
    DEFAULT_INITIAL_SUMMARY_PROMPT,
    Options,
)
from .summarization import SummarizationResult, Thread


class SummarizationNode(Runnable[Any, dict[str, Any]]):
    """A node of a LangGraph graph that calls `summarize_messages`.

    It reads `input_messages_key` and `context` of the state, and writes
    `output_messages_key` and `context["running_summary"]`. With one key for both, the
    messages of the state are overwritten. The other keywords are those of
    `Options`.
    """

    def __init__(
        self,
        *,
        model: LanguageModelLike,
        max_tokens: int,
        max_tokens_before_summary: int | None = None,
        max_summary_tokens: int = 256,
        token_counter: TokenCounter = count_tokens_approximately,
        initial_summary_prompt: ChatPromptTemplate = DEFAULT_INITIAL_SUMMARY_PROMPT,
        existing_summary_prompt: ChatPromptTemplate = DEFAULT_EXISTING_SUMMARY_PROMPT,
        final_prompt: ChatPromptTemplate = DEFAULT_FINAL_SUMMARY_PROMPT,
        timeout: float = 60.0,
        on_failure: OnFailure | None = None,
        input_messages_key: str = "messages",
        output_messages_key: str = "summarized_messages",
        name: str = "summarization",
    ) -> None:
        self.name = name
        self.input_messages_key = input_messages_key
        self.output_messages_key = output_messages_key
        self.options = Options(
            model=model,
            max_tokens=max_tokens,
            max_tokens_before_summary=max_tokens_before_summary,
            max_summary_tokens=max_summary_tokens,
            token_counter=token_counter,
            initial_summary_prompt=initial_summary_prompt,
            existing_summary_prompt=existing_summary_prompt,
            final_prompt=final_prompt,
            timeout=timeout,
            on_failure=on_failure,
        )

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
        """The context of a state, a dict or an object with fields, and the call."""
        values = state if isinstance(state, Mapping) else getattr(state, "__dict__", {})
        messages = values.get(self.input_messages_key)
        if messages is None:
            raise ValueError(
                f"Missing required field `{self.input_messages_key}` in the input."
            )
        context = values.get("context") or {}
        return context, Thread(messages, context.get("running_summary"), self.options)

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
