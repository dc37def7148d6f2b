"""How the middleware gets a summary: from a chat model, or a function of the caller."""

import asyncio
import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from langchain_core.exceptions import ContextOverflowError, ModelError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import BaseModel

from ..engine.compose import compose
from ..engine.exceptions import SummaryError
from ..engine.plan import Compaction, Step
from ..engine.policy import CHUNK_TOKENS, Policy
from ..engine.summaries import schemas, summarizer
from ..engine.summaries.summarizer import SummaryText
from ..engine.summaries.validation import validate
from ..engine.tokens import TokenCounter, count_tokens

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


class ModelWriter:
    """Asks a chat model, in chunks, with the prompts of the policy.

    The model is called without `await`, in the thread of the compaction: a connection
    that it keeps belongs to no event loop, and no callback of the agent's run is
    inherited.
    """

    def __init__(self, model: BaseChatModel, count_tokens: TokenCounter) -> None:
        self.model = model
        self.count_tokens = count_tokens
        window = find_window(model)
        self.chunk_tokens = window // 2 if window else CHUNK_TOKENS

    async def write(
        self, step: Step, messages: Sequence[BaseMessage], policy: Policy
    ) -> SummaryText:
        """Raises SummaryError, or what went wrong."""
        limit = min(self.chunk_tokens, policy.chunk_tokens)
        write = partial(
            summarizer.write,
            self.invoke,
            step,
            messages,
            policy=policy,
            count_tokens=self.count_tokens,
        )
        try:
            return await write(chunk_tokens=limit)
        except ContextOverflowError:
            # Too much for the summariser: all of it is read, in smaller pieces.
            return await write(chunk_tokens=max(1, limit // 4))

    async def invoke(self, messages: list[BaseMessage]) -> AIMessage:
        """One request; what may go better the next time is tried again."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                reply = self.model.invoke(messages, config=CONFIG)
                break
            except Exception as error:
                is_final = isinstance(error, ModelError) and not error.is_retryable
                if is_final or attempt == ATTEMPTS:
                    raise
                await asyncio.sleep(PAUSE * attempt)
        if not isinstance(reply, AIMessage):
            # Whatever stands in for a model: LangChain reads nothing but the text, too.
            reply = AIMessage(str(reply.text))
        if reply.tool_calls:
            raise SummaryError("The model called a tool instead of summarising.")
        return reply


class FunctionWriter:
    """Asks a function or Runnable that takes messages and returns the text.

    It gets them as they are; an earlier summary comes before them, as a message. It may
    return a pydantic object instead, as a model `with_structured_output` does.
    """

    def __init__(self, function: Summarizer) -> None:
        self.function = function

    async def write(
        self, step: Step, messages: Sequence[BaseMessage], policy: Policy
    ) -> SummaryText:
        if isinstance(step, Compaction) and step.is_trim:
            return SummaryText("", prompt_hash="", requests=0)
        previous = getattr(step, "previous", None)
        blocks = [previous] if previous else []
        material = [*compose(system_prompt="", blocks=blocks).messages, *messages]
        if isinstance(self.function, Runnable):
            text = self.function.invoke(material, config=CONFIG)
        else:
            result = self.function(material)
            text = await result if inspect.isawaitable(result) else result
        structured = None
        # A message is a pydantic object, too, and may be a call of a tool.
        if isinstance(text, BaseModel) and not isinstance(text, BaseMessage):
            structured = schemas.dump(text)
            text = schemas.render(structured)
        if not isinstance(text, str):
            raise TypeError(
                f"the summarizer returned {type(text).__name__}: expected a str or a "
                "pydantic object"
            )
        size = count_tokens(material)
        text = validate(AIMessage(text), input_tokens=size, policy=policy)
        return SummaryText(text, prompt_hash="", requests=1, structured=structured)


Writer = ModelWriter | FunctionWriter


def make_writer(summarizer: Summarizer, count_tokens: TokenCounter) -> Writer:
    """The one for what a caller summarises with."""
    if isinstance(summarizer, BaseChatModel):
        return ModelWriter(summarizer, count_tokens)
    return FunctionWriter(summarizer)


def find_window(model: object) -> int | None:
    """How many tokens a model takes, where its profile tells."""
    profile = getattr(model, "profile", None)
    size = profile.get("max_input_tokens") if isinstance(profile, dict) else None
    return size if type(size) is int and size > 0 else None


def find_provider(model: object) -> str:
    """Who runs a model, in LangChain's words; "" = unknown."""
    find = getattr(model, "_get_ls_params", None)
    return str((find() if find else {}).get("ls_provider") or "")
