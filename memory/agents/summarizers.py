"""Summary writers of the middleware: a chat model, or a function of the caller."""

import asyncio
import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.exceptions import ModelError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.configurable import DynamicRunnable
from pydantic import BaseModel

from ..engine.compose import compose_context
from ..engine.exceptions import SummaryError
from ..engine.plan import Compaction, Step
from ..engine.policy import CHUNK_TOKENS, Policy
from ..engine.summaries import schemas, summarizer
from ..engine.summaries.summarizer import SummaryText
from ..engine.summaries.validation import validate_summary
from ..engine.tokens import TokenCounter, count_tokens
from .failures import is_overflow

ATTEMPTS = 3
# Seconds before the second attempt; twice as many before the third.
PAUSE = 1.0
# LangGraph streams no token of a call with this tag; the metadata is LangChain's own.
CONFIG: RunnableConfig = {
    "tags": ["nostream"],
    "metadata": {"lc_source": "summarization"},
    "run_name": "windowpane_summary",
}

# Wrappers of a chat model, and their attribute for it: `bind`, `with_config` and
# `with_retry`; `with_fallbacks`, whose first one counts; `configurable_fields`.
WRAPPERS: tuple[tuple[type, str], ...] = (
    (RunnableBindingBase, "bound"),
    (RunnableWithFallbacks, "runnable"),
    (DynamicRunnable, "default"),
)

Summarizer = BaseChatModel | Runnable[Any, Any] | Callable[[list[BaseMessage]], Any]


class ModelCaller:
    """A model or chain, called in the thread of the compaction.

    No callback of the agent's run is inherited. It is called without `await`: a
    connection that a model keeps belongs to no event loop. If it can only be awaited,
    that happens in an event loop of the compaction's own.
    """

    def __init__(
        self, runnable: Runnable[Any, Any], config: RunnableConfig | None = None
    ) -> None:
        self.runnable = runnable
        self.config = config or {}
        # A model of the caller's may have an `invoke` of its own.
        known = inspect.signature(runnable.invoke).parameters
        self._takes_config = not {"config", "kwargs"}.isdisjoint(known)
        self._is_awaited = False

    async def __call__(self, value: Any) -> Any:
        if not self._is_awaited:
            listener = _AwaitListener()
            options = self._add_config(callbacks=[listener])
            try:
                return self.runnable.invoke(value, **options)
            except Exception as error:
                self._is_awaited = listener.is_asked or asks_to_await(error)
                if not self._is_awaited:
                    raise
        return await self.runnable.ainvoke(value, **self._add_config())

    def _add_config(self, **more: Any) -> dict[str, Any]:
        return {"config": {**self.config, **more}} if self._takes_config else {}


class _AwaitListener(BaseCallbackHandler):
    """A callback that detects a part which can only be awaited.

    `with_fallbacks` raises the error of its first model, whatever became of the others.
    """

    is_asked = False

    def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        self.is_asked |= asks_to_await(error)

    on_chain_error = on_llm_error


def asks_to_await(error: BaseException) -> bool:
    """Return whether the error is of something that can't be called without `await`."""
    is_lambda = isinstance(error, TypeError) and "coroutine function" in str(error)
    return is_lambda or isinstance(error, NotImplementedError)


class ModelWriter:
    """A writer that asks a chat model, in chunks, with the prompts of the policy."""

    def __init__(self, model: Any, count_tokens: TokenCounter) -> None:
        self.model = model
        self._call = ModelCaller(model, CONFIG)
        self.count_tokens = count_tokens
        window = find_window(model)
        self.chunk_tokens = window // 2 if window else CHUNK_TOKENS

    async def write(
        self, step: Step, messages: Sequence[BaseMessage], policy: Policy
    ) -> SummaryText:
        """Write the summary of a step; raise SummaryError or the model's error."""
        limit = min(self.chunk_tokens, policy.chunk_tokens)
        write = partial(
            summarizer.write_summary,
            self.invoke,
            step,
            messages,
            policy=policy,
            count_tokens=self.count_tokens,
        )
        try:
            return await write(chunk_tokens=limit)
        except Exception as error:
            if not is_overflow(error):
                raise
            # Too much for the summariser, so all of it is read in smaller pieces.
            return await write(chunk_tokens=max(1, limit // 4))

    async def invoke(self, messages: list[BaseMessage]) -> AIMessage:
        """Send one request; repeat it after an error that may be temporary."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                reply = await self._call(messages)
                break
            except Exception as error:
                is_final = isinstance(error, ModelError) and not error.is_retryable
                if is_final or attempt == ATTEMPTS:
                    raise
                await asyncio.sleep(PAUSE * attempt)
        if not isinstance(reply, AIMessage):
            # A fake model may return another type; LangChain too reads only the text.
            reply = AIMessage(str(reply.text))
        if reply.tool_calls:
            raise SummaryError("The model called a tool instead of summarising.")
        return reply


class FunctionWriter:
    """A writer that asks a function or Runnable for the text.

    It gets the messages as they are; an earlier summary comes before them, as a
    message. It may return a pydantic object instead, as a model
    `with_structured_output` does.
    """

    def __init__(self, function: Summarizer) -> None:
        self.function = function
        is_chain = isinstance(function, Runnable)
        self._call = ModelCaller(function, CONFIG) if is_chain else None

    async def write(
        self, step: Step, messages: Sequence[BaseMessage], policy: Policy
    ) -> SummaryText:
        if isinstance(step, Compaction) and step.is_trim:
            return SummaryText("", prompt_hash="", requests=0)
        previous = getattr(step, "previous", None)
        blocks = [previous] if previous else []
        material = [
            *compose_context(system_prompt="", blocks=blocks).messages,
            *messages,
        ]
        if self._call:
            text = await self._call(material)
        else:
            result = self.function(material)
            text = await result if inspect.isawaitable(result) else result
        structured = None
        # A message is a pydantic object, too, and may be a call of a tool.
        if isinstance(text, BaseModel) and not isinstance(text, BaseMessage):
            structured = schemas.dump_summary(text)
            text = schemas.render_summary(structured)
        if not isinstance(text, str):
            raise TypeError(
                f"the summarizer returned {type(text).__name__}: expected a str or a "
                "pydantic object"
            )
        size = count_tokens(material)
        text = validate_summary(AIMessage(text), input_tokens=size, policy=policy)
        return SummaryText(text, prompt_hash="", requests=1, structured=structured)


Writer = ModelWriter | FunctionWriter


def make_writer(summarizer: Summarizer, count_tokens: TokenCounter) -> Writer:
    """Return the writer for a caller's summarizer."""
    if is_model(summarizer):
        return ModelWriter(summarizer, count_tokens)
    return FunctionWriter(summarizer)


def is_model(summarizer: object) -> bool:
    # A model that is chosen with each call has no other mark than this method.
    is_chosen_later = isinstance(summarizer, Runnable) and hasattr(
        summarizer, "bind_tools"
    )
    return is_chosen_later or find_chat_model(summarizer) is not None


def find_chat_model(model: object) -> BaseChatModel | None:
    """Return the chat model inside of wrappers; None if there is none."""
    while not isinstance(model, BaseChatModel):
        names = [name for kind, name in WRAPPERS if isinstance(model, kind)]
        if not names:
            return None
        model = getattr(model, names[0])
    return model


def find_window(model: object) -> int | None:
    """Return how many tokens a model accepts, if its profile says so."""
    profile = getattr(find_chat_model(model) or model, "profile", None)
    size = profile.get("max_input_tokens") if isinstance(profile, dict) else None
    return size if type(size) is int and size > 0 else None


def find_provider(model: object) -> str:
    """Return the provider of a model, in LangChain's words; "" if unknown."""
    find = getattr(find_chat_model(model) or model, "_get_ls_params", None)
    return str((find() if find else {}).get("ls_provider") or "")
