"""How the middleware asks for a summary: of a chat model, or of somebody's function."""

import asyncio
import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from langchain_core.exceptions import ContextOverflowError, ModelError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig

from memory.engine import plan
from memory.engine.compose import SUMMARY_FENCE, SummaryBlock, compose
from memory.engine.policy import Policy
from memory.engine.summaries import summarizer
from memory.engine.summaries.summarizer import SummaryText
from memory.engine.tokens import TokenCounter, count_tokens

ATTEMPTS = 3
# Seconds before the second attempt; twice as many before the third.
PAUSE = 1.0
# LangGraph streams no token of a call with this tag; the metadata is LangChain's own.
CONFIG: RunnableConfig = {
    "tags": ["nostream"],
    "metadata": {"lc_source": "summarization"},
    "run_name": "windowpane_summary",
}

Summarizer = BaseChatModel | Runnable[Any, Any] | Callable[[list[BaseMessage]], Any]


class Writer(Protocol):
    """Writes the summary of a planned step. Raises SummaryError, or what went wrong."""

    async def write(
        self, step: plan.Step, messages: Sequence[BaseMessage]
    ) -> SummaryText: ...


class ModelWriter:
    """Asks a chat model, in chunks, with the prompts of the policy.

    The model is called without `await`, in the thread of the compaction: a connection
    that it keeps belongs to no event loop, and no callback of the agent's run is
    inherited.
    """

    def __init__(
        self,
        model: BaseChatModel,
        policy: Policy,
        count_tokens: TokenCounter,
    ) -> None:
        self.model = model
        self.policy = policy
        self.count_tokens = count_tokens
        window = find_window(model)
        self.chunk_tokens = window // 2 if window else summarizer.CHUNK_TOKENS

    async def write(
        self, step: plan.Step, messages: Sequence[BaseMessage]
    ) -> SummaryText:
        limit = min(self.chunk_tokens, self.policy.chunk_tokens)
        write = partial(
            summarizer.write,
            self.invoke,
            step,
            messages,
            policy=self.policy,
            count_tokens=self.count_tokens,
        )
        try:
            return await write(chunk_tokens=limit)
        except ContextOverflowError:
            # Too much for the summariser: all of it is read, in smaller pieces.
            return await write(chunk_tokens=max(1, limit // 4))

    async def invoke(self, messages: list[BaseMessage]) -> AIMessage:
        """One request; what may go better the next time is tried again."""
        for attempt in range(1, ATTEMPTS):
            try:
                return self.model.invoke(messages, config=CONFIG)
            except Exception as error:
                if isinstance(error, ModelError) and not error.is_retryable:
                    raise
                await asyncio.sleep(PAUSE * attempt)
        return self.model.invoke(messages, config=CONFIG)


class FunctionWriter:
    """Asks a function or Runnable that takes messages and returns the text.

    It gets them as they are; an earlier summary comes before them, as a message.
    """

    def __init__(self, function: Summarizer, policy: Policy) -> None:
        self.function = function
        self.policy = policy

    async def write(
        self, step: plan.Step, messages: Sequence[BaseMessage]
    ) -> SummaryText:
        previous = getattr(step, "previous", None)
        material = [*_quote([previous] if previous else []), *messages]
        text = await self._call(material)
        if not isinstance(text, str):
            raise TypeError(
                f"the summarizer returned {type(text).__name__}: expected a str"
            )
        size = count_tokens(material)
        text = summarizer.validate(
            AIMessage(text), input_tokens=size, policy=self.policy
        )
        return SummaryText(text, prompt_hash="", requests=1)

    async def _call(self, messages: list[BaseMessage]) -> object:
        if isinstance(self.function, Runnable):
            return self.function.invoke(messages, config=CONFIG)
        result = self.function(messages)
        return await result if inspect.isawaitable(result) else result


def find_window(model: object) -> int | None:
    """How many tokens a model takes, where its profile tells."""
    profile = getattr(model, "profile", None)
    size = profile.get("max_input_tokens") if isinstance(profile, dict) else None
    return size if type(size) is int and size > 0 else None


def find_provider(model: object) -> str:
    """Who runs a model, in LangChain's words; "" = unknown."""
    find = getattr(model, "_get_ls_params", None)
    return str((find() if find else {}).get("ls_provider") or "")


def _quote(blocks: Sequence[SummaryBlock]) -> list[HumanMessage]:
    return compose(system_prompt="", blocks=blocks, fence=SUMMARY_FENCE).messages
