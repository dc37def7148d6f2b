"""The same memory for agents of LangChain's `create_agent`, without Django.

The messages of the agent's state are never rewritten: each request gets a view of them.
Compaction comes after the answer, in a thread of its own; until it is done, a hard
ceiling keeps the requests within the model's window.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from concurrent import futures
from typing import Any, Self

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import AgentState, ModelRequest, ModelResponse
from langchain.chat_models import init_chat_model
from langchain_core.exceptions import ContextOverflowError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from memory.engine.exceptions import PolicyError
from memory.engine.policy import Policy
from memory.engine.tokens import TokenCounter, count_text, count_tokens

from . import threads
from .compaction import Compactor
from .stores import InMemoryStore, MemoryStore, ThreadMemory
from .summarizers import (
    FunctionWriter,
    ModelWriter,
    Summarizer,
    Writer,
    find_provider,
    find_window,
)
from .view import Viewer

logger = logging.getLogger(__name__)

# Share of the model's window that a request may fill; the rest is for the answer.
CEILING = 0.95
# After an overflow, the one retry has at most this share of the first request.
RETRY_SHARE = 0.5
LANGCHAIN_KEEP = ("messages", 20)


def make_policy(
    trigger: object, keep: object, summary_prompt: str, trim_tokens: int | None
) -> Policy:
    """From the arguments of LangChain's middleware; without any, the default policy."""
    prompt = summary_prompt.replace("{messages}", "(in the next message)")
    prompts = dict.fromkeys(("initial_prompt", "extend_prompt", "merge_prompt"), prompt)
    if trigger is None and keep == LANGCHAIN_KEEP:
        return Policy(**prompts)
    return Policy.langchain(
        trigger=trigger, keep=keep, trim_tokens_to_summarize=trim_tokens, **prompts
    )


class WindowpaneMiddleware(AgentMiddleware):
    """Summary + window for an agent, in place of LangChain's `SummarizationMiddleware`.

    Takes the same arguments, or a `policy`. With `background=False` the agent returns
    after the compaction: for programs that end, or are put to sleep, with the answer.
    """

    def __init__(
        self,
        model: str | BaseChatModel,
        *,
        trigger: Any = None,
        keep: Any = LANGCHAIN_KEEP,
        token_counter: TokenCounter = count_tokens,
        summary_prompt: str = "",
        trim_tokens_to_summarize: int | None = 4000,
        summarizer: str | Summarizer | None = None,
        policy: Policy | None = None,
        store: MemoryStore | None = None,
        background: bool = True,
        compaction_timeout: float = 60.0,
        backoff: float = 30.0,
    ) -> None:
        super().__init__()
        if policy and (trigger is not None or keep != LANGCHAIN_KEEP or summary_prompt):
            raise PolicyError("policy: expected without trigger, keep, summary_prompt")
        self.model = init_chat_model(model) if isinstance(model, str) else model
        self.policy = policy or make_policy(
            trigger, keep, summary_prompt, trim_tokens_to_summarize
        )
        self.context_window = self.policy.context_window or find_window(self.model)
        kinds = {kind for clause in self.policy.trigger for kind, _ in clause}
        if self.context_window is None and "fraction" in kinds | {self.policy.keep[0]}:
            raise PolicyError(
                "fraction: expected a model whose profile has max_input_tokens, or a "
                "policy with context_window"
            )
        self.count_tokens = guard_counter(token_counter)
        self.store = store or InMemoryStore()
        self.background = background
        self.compaction_timeout = compaction_timeout
        # Estimated tokens of the last request beside its window.
        self._overhead = 0
        self._viewer = Viewer(self.policy, self.count_tokens)
        if isinstance(summarizer, str):
            summarizer = init_chat_model(summarizer)
        if summarizer is None or isinstance(summarizer, BaseChatModel):
            chat_model = summarizer or self.model
            writer: Writer = ModelWriter(chat_model, self.policy, self.count_tokens)
        else:
            writer = FunctionWriter(summarizer, self.policy)
        self._compactor = Compactor(
            self.policy,
            writer,
            self.store,
            self.count_tokens,
            context_window=self.context_window,
            backoff=backoff,
            provider=find_provider(self.model),
        )

    def wrap_model_call(
        self,
        request: ModelRequest,
        handler: Callable[[ModelRequest], ModelResponse],
    ) -> ModelResponse:
        sent = self._shape(request)
        try:
            return handler(sent)
        except ContextOverflowError as error:
            self._wait(self._start(request.messages, force=True))
            return handler(self._shrink(request, sent, error))

    async def awrap_model_call(
        self,
        request: ModelRequest,
        handler: Callable[[ModelRequest], Awaitable[ModelResponse]],
    ) -> ModelResponse:
        sent = self._shape(request)
        try:
            return await handler(sent)
        except ContextOverflowError as error:
            await self._wait_async(self._start(request.messages, force=True))
            return await handler(self._shrink(request, sent, error))

    def after_agent(self, state: AgentState, runtime: Any) -> None:
        job = self._start(state["messages"])
        if not self.background:
            self._wait(job)

    async def aafter_agent(self, state: AgentState, runtime: Any) -> None:
        job = self._start(state["messages"])
        if not self.background:
            await self._wait_async(job)

    def memory(self, thread_id: str) -> ThreadMemory:
        """What is remembered of a thread: its summaries and the record of all
        compactions."""
        return self.store.load(threads.thread_key(thread_id))

    def wait(self, timeout: float | None = None) -> None:
        """Until no compaction is under way."""
        self._compactor.wait(timeout)

    def close(self) -> None:
        """Finish the compactions that have begun; none is started from now on."""
        self._compactor.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _shape(self, request: ModelRequest, limit: int | None = None) -> ModelRequest:
        """The request with the view of its messages, within `limit` tokens."""
        window = self.policy.context_window or find_window(request.model)
        if limit is None and (window := window or self.context_window):
            limit = int(window * CEILING)
        _, body = threads.split_system(request.messages)
        thread = threads.find_thread(body)
        try:
            memory = self.store.load(thread)
        except Exception:
            # Without its memory a thread is sent as a whole, as far as there is room.
            logger.exception("the memory of thread=%s cannot be read", thread)
            memory = ThreadMemory()
        context, window_tokens = self._viewer.compose(request.messages, memory)
        beside = self._count_beside(request)
        around = self._viewer.count_around(context)
        self._overhead = beside + around
        if limit is not None and beside + around + window_tokens > limit:
            context = self._viewer.squeeze(context, limit - beside)
        return request.override(messages=context.messages)

    def _count_beside(self, request: ModelRequest) -> int:
        """Tokens of the system prompt and the tools."""
        system = [request.system_message] if request.system_message else []
        tools = [
            tool if isinstance(tool, dict) else convert_to_openai_tool(tool)
            for tool in request.tools
        ]
        return self.count_tokens(system) + (
            count_text(json.dumps(tools, default=repr)) if tools else 0
        )

    def _shrink(
        self, request: ModelRequest, sent: ModelRequest, error: ContextOverflowError
    ) -> ModelRequest:
        """The request for the one retry. Raises the error if it can't be smaller."""
        size = self.count_tokens(sent.messages)
        beside = self._count_beside(request)
        smaller = self._shape(request, limit=int((size + beside) * RETRY_SHARE))
        if self.count_tokens(smaller.messages) >= size:
            raise error
        return smaller

    def _start(
        self, messages: Sequence[BaseMessage], *, force: bool = False
    ) -> futures.Future[None]:
        _, body = threads.split_system(messages)
        thread = threads.find_thread(body)
        return self._compactor.start(thread, body, overhead=self._overhead, force=force)

    def _wait(self, job: futures.Future[None]) -> None:
        futures.wait([job], self.compaction_timeout)

    async def _wait_async(self, job: futures.Future[None]) -> None:
        await asyncio.wait([asyncio.wrap_future(job)], timeout=self.compaction_timeout)


def guard_counter(counter: TokenCounter) -> TokenCounter:
    """The counter, or the usual estimate where it fails: a count costs no answer."""

    def count(messages: Sequence[BaseMessage]) -> int:
        try:
            return counter(messages)
        except Exception:
            logger.exception("the token counter failed; counting by estimate")
            return count_tokens(messages)

    return count
