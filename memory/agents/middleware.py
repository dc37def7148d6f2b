"""The memory for agents of LangChain's `create_agent`, without Django.

The messages of the agent's state are never rewritten: each request gets a view of them.
Compaction comes after the answer, or between the rounds of a long turn, in a thread of
its own. Only a request that would not fit waits for it; a hard ceiling keeps every
request within the model's window.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from concurrent import futures
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal, Self, TypeVar, get_args
from weakref import WeakSet

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import AgentState, ModelRequest, ModelResponse
from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel

from ..engine import budget
from ..engine.exceptions import PolicyError
from ..engine.policy import Policy
from ..engine.tokens import TokenCounter, count_text, count_tokens
from ..engine.triggers import find_due, measure_window
from ..engine.wording import shorten_value
from . import threads
from .compaction import Compactor, ThreadTask, reported_tokens
from .failures import Failures, OnFailure, is_overflow
from .stores import InMemoryStore, MemoryStore, ThreadMemory
from .summarizers import (
    ModelWriter,
    Summarizer,
    find_provider,
    find_window,
    make_writer,
)
from .view import AgentView, Viewer

logger = logging.getLogger(__name__)

# Share of the model's window that a request may fill; the rest is for the answer.
CEILING = 0.95
# After an overflow, the one retry has at most this share of the first request.
RETRY_SHARE = 0.5
LANGCHAIN_KEEP = ("messages", 20)
# Replaces the messages in LangChain's prompts; here they are a message of their own.
MESSAGES = "(in the next message)"
PROMPTS = ("initial_prompt", "extend_prompt", "merge_prompt")
SUMMARY_MARK = {"lc_source": "summarization"}
# The most threads whose last request is kept.
MAX_LAST = 1000
When = Literal["after", "before"]
T = TypeVar("T")
# From the agent's state and the config of its run.
ChoosePolicy = Callable[[AgentState, RunnableConfig], Policy]


@dataclass(frozen=True, slots=True)
class AgentCall:
    """A request to the model while it is made."""

    request: ModelRequest
    view: AgentView
    task: ThreadTask

    @property
    def is_over(self) -> bool:
        return self.task.limit is not None and self.view.tokens > self.task.limit


@dataclass(eq=False, repr=False)
class WindowpaneMiddleware(AgentMiddleware):
    """Summary and window for an agent, instead of LangChain's summarization.

    Takes the arguments of LangChain's `SummarizationMiddleware`, or a `policy`. With
    `when="before"` a call that triggers a compaction waits for it, as LangChain's does.
    With `background=False` the agent returns after the compaction: for programs that
    end, or are put to sleep, with the answer.
    """

    model: str | BaseChatModel
    _: KW_ONLY
    trigger: Any = None
    keep: Any = LANGCHAIN_KEEP
    token_counter: TokenCounter = count_tokens
    summary_prompt: str = ""
    trim_tokens_to_summarize: int | None = 4000
    summarizer: str | Summarizer | None = None
    schema: type[BaseModel] | None = None
    policy: Policy | ChoosePolicy | None = None
    store: MemoryStore | None = None
    when: When = "after"
    background: bool = True
    compaction_timeout: float = 60.0
    backoff: float = 30.0
    on_failure: OnFailure | None = None

    def __post_init__(self) -> None:
        values = (self.trigger, self.schema, self.summary_prompt or None)
        is_usual = values == (None, None, None) and self.keep == LANGCHAIN_KEEP
        if self.policy and not is_usual:
            raise PolicyError(
                "policy: expected without trigger, keep, summary_prompt, schema"
            )
        self.model = load_model(self.model)
        is_fixed = isinstance(self.policy, Policy)
        self._choose_policy = None if is_fixed else self.policy
        self._begin(self.policy if is_fixed else self._make_policy())

    def _make_policy(self) -> Policy:
        """Return the policy of LangChain's arguments; without any, the default one."""
        prompt = self.summary_prompt.replace("{messages}", MESSAGES)
        others: dict[str, Any] = dict.fromkeys(PROMPTS, prompt)
        if self.schema is not None:
            others["profile"] = self.schema
        if self.trigger is None and self.keep == LANGCHAIN_KEEP:
            return Policy(**others)
        trim = self.trim_tokens_to_summarize
        sizes = {"trigger": self.trigger, "keep": self.keep}
        return Policy.from_langchain(**sizes, trim_tokens_to_summarize=trim, **others)

    def _begin(self, policy: Policy) -> None:
        """Set up the parts; raise PolicyError for arguments that do not match."""
        if self.when not in get_args(When):
            raise PolicyError(
                "when %(value)s: expected after or before", value=self.when
            )
        self.policy = policy
        self.context_window = self.policy.context_window or find_window(self.model)
        kinds = {kind for clause in self.policy.trigger for kind, _ in clause}
        if self.context_window is None and "fraction" in kinds | {self.policy.keep[0]}:
            raise PolicyError(
                "fraction: expected a model whose profile has max_input_tokens, or a "
                "policy with context_window"
            )
        self.count_tokens = guard_counter(lambda each: self.token_counter(each))
        self.store = self.store or InMemoryStore()
        # A thread's last task: the answer does not show the prompt and tools.
        self._last: dict[str, ThreadTask] = {}
        # Compactions that a call has waited for until the timeout.
        self._slow: WeakSet[futures.Future[None]] = WeakSet()
        self._viewer = Viewer(self.count_tokens)
        self._compactor = Compactor(
            # Without a summarizer, the agent's model is used as a chat model, whatever
            # it is.
            make_writer(load_model(self.summarizer), self.count_tokens)
            if self.summarizer
            else ModelWriter(self.model, self.count_tokens),
            self.store,
            self.count_tokens,
            context_window=self.context_window,
            backoff=self.backoff,
            provider=find_provider(self.model),
            failures=Failures(self.on_failure),
        )

    def wrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]
    ) -> ModelResponse:
        call = self._open(request)
        if job := self._start_early(call):
            self._wait(job)
            call = self._open(request)
        sent = self._send(call)
        try:
            return handler(sent)
        except Exception as error:
            if not is_overflow(error):
                raise
            smaller = self._reopen(request, sent)
            self._wait(self._compactor.start_task(replace(smaller.task, force=True)))
            return handler(self._resend(self._reopen(request, sent), sent, error))

    async def awrap_model_call(
        self,
        request: ModelRequest,
        handler: Callable[[ModelRequest], Awaitable[ModelResponse]],
    ) -> ModelResponse:
        # In a thread, because a store and a counter may block.
        call = await asyncio.to_thread(self._open, request)
        if job := self._start_early(call):
            await self._wait_async(job)
            call = await asyncio.to_thread(self._open, request)
        sent = self._send(call)
        try:
            return await handler(sent)
        except Exception as error:
            if not is_overflow(error):
                raise
            smaller = await asyncio.to_thread(self._reopen, request, sent)
            task = replace(smaller.task, force=True)
            await self._wait_async(self._compactor.start_task(task))
            retry = await asyncio.to_thread(self._reopen, request, sent)
            return await handler(self._resend(retry, sent, error))

    def after_agent(self, state: AgentState, runtime: Any) -> None:
        job = self._start_after(state)
        if not self.background:
            self._wait(job)

    async def aafter_agent(self, state: AgentState, runtime: Any) -> None:
        job = self._start_after(state)
        if not self.background:
            await self._wait_async(job)

    def memory(self, thread_id: str) -> ThreadMemory:
        """Return the memory of a thread: its summaries and all compaction records."""
        return self.store.load(threads.thread_key(thread_id))

    def wait(self, timeout: float | None = None) -> None:
        """Wait until no compaction is under way."""
        self._compactor.wait_for_all(timeout)

    def close(self) -> None:
        """Finish the compactions that have begun; none is started from now on."""
        self._compactor.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _open(self, request: ModelRequest, most: int | None = None) -> AgentCall:
        """Return the call without its ceiling; `most`: tokens it may have."""
        policy = self._find_policy(request.state)
        window = policy.context_window or self._find_window(request)
        if most is None and window:
            most = int(window * CEILING)
        beside = self._count_beside(request)
        limit = None if most is None else max(1, most - beside)
        if limit is not None:
            policy = budget.cap_policy(policy, limit)
        _, body = threads.split_system(request.messages)
        thread = self._find_thread(request.state, body)
        memory = self._load(thread)
        view = self._viewer.compose_view(request.messages, memory, policy)
        view = self._adapt(view, request, beside)
        room = None
        if limit is not None:
            # Before a call, the newest message is known; after it, the next one is not.
            is_known = self.when == "before"
            room = budget.for_window(policy, limit, view.around, is_waiting=is_known)
        overhead = beside + view.around
        task = ThreadTask(
            thread,
            *(view.body, policy, overhead, limit, room),
            window=window,
            provider=find_provider(request.model),
        )
        self._last[thread] = replace(task, body=())
        while len(self._last) > MAX_LAST:
            self._last.pop(next(iter(self._last)), None)
        return AgentCall(request, view, task)

    def _find_window(self, request: ModelRequest) -> int | None:
        """Return the window of the request's model, or else of the agent's."""
        return find_window(request.model) or self.context_window

    def _find_thread(self, state: AgentState, body: Sequence[BaseMessage]) -> str:
        """Return the key of the memory of a thread with these messages."""
        return threads.find_thread(body)

    def _load(self, thread: str) -> ThreadMemory:
        try:
            return self.store.load(thread)
        except Exception:
            # Without its memory, the whole thread is sent, as far as there is room.
            logger.exception("the memory of thread=%s cannot be read", thread)
            return ThreadMemory()

    def _adapt(self, view: AgentView, request: ModelRequest, beside: int) -> AgentView:
        """Return the view as it is measured and sent; for subclasses.

        `beside`: tokens of the system prompt and the tools.
        """
        return view

    def _find_policy(self, state: AgentState) -> Policy:
        """Return the policy of a call; the default if the caller's function fails."""
        if self._choose_policy is None:
            return self.policy
        try:
            policy = self._choose_policy(state, ensure_config())
            if isinstance(policy, Policy):
                return policy
            value = shorten_value(policy)
            raise PolicyError("policy %(value)s: expected a Policy", value=value)
        except Exception:
            logger.exception("the policy of a thread cannot be chosen")
            return self.policy

    def _start_early(self, call: AgentCall) -> futures.Future[None] | None:
        """Begin the compaction that is due before the answer.

        Return the job if the call has to wait for it: it does not fit into the model's
        window, or "before" is set.
        """
        if not call.is_over and not self._is_due(call):
            return None
        if call.is_over or self.when == "before":
            return self._compactor.start_task(call.task)
        if isinstance(call.view.body[-1], ToolMessage):
            self._compactor.start_task(call.task)
        return None

    def _is_due(self, call: AgentCall) -> bool:
        window, task = call.view.window, call.task
        measures = measure_window(
            window,
            count_tokens=lambda _: call.view.window_tokens,
            overhead=task.overhead,
            context_window=task.window,
            reported=reported_tokens(window, task.provider),
            policy=task.policy,
        )
        due = find_due(task.policy, measures, call.view.blocks, task.room)
        return bool(window and task.policy.enabled and due)

    def _send(self, call: AgentCall) -> ModelRequest:
        messages = call.view.context.messages
        if call.is_over:
            messages = self._viewer.squeeze_view(call.view, call.task.limit or 0)
        summaries = call.view.context.get_section("summaries")
        marked = [
            mark_summary(message)
            if any(message is each for each in summaries)
            else message
            for message in messages
        ]
        return call.request.override(messages=marked)

    def _count_beside(self, request: ModelRequest) -> int:
        """Return the tokens of the system prompt and the tools."""
        system = [request.system_message] if request.system_message else []
        tools = [
            tool if isinstance(tool, dict) else convert_to_openai_tool(tool)
            for tool in request.tools
        ]
        return self.count_tokens(system) + (
            count_text(json.dumps(tools, default=repr)) if tools else 0
        )

    def _reopen(self, request: ModelRequest, sent: ModelRequest) -> AgentCall:
        """Return the call for the one retry after an overflow."""
        size = self.count_tokens(sent.messages) + self._count_beside(request)
        return self._open(request, most=int(size * RETRY_SHARE))

    def _resend(
        self, retry: AgentCall, sent: ModelRequest, error: Exception
    ) -> ModelRequest:
        """Return the smaller request; raise the error if it can't be smaller."""
        smaller = self._send(retry)
        if self.count_tokens(smaller.messages) >= self.count_tokens(sent.messages):
            raise error
        return smaller

    def _start_after(self, state: AgentState) -> futures.Future[None] | None:
        if self.when == "before":
            return None
        _, body = threads.split_system(state["messages"])
        thread = self._find_thread(state, body)
        last = self._last.pop(thread, None)
        last = last or ThreadTask(thread, (), self._find_policy(state))
        return self._compactor.start_task(replace(last, body=body))

    def _wait(self, job: futures.Future[None] | None) -> None:
        """Wait for the job, unless it was too slow once."""
        if job and job not in self._slow:
            late = futures.wait([job], self.compaction_timeout).not_done
            self._slow |= late

    async def _wait_async(self, job: futures.Future[None] | None) -> None:
        if job and job not in self._slow:
            waiting = [asyncio.wrap_future(job)]
            _, late = await asyncio.wait(waiting, timeout=self.compaction_timeout)
            self._slow |= {job} if late else set()


def load_model(model: str | T) -> BaseChatModel | T:
    """Return a model by its name; anything else as it is."""
    return init_chat_model(model) if isinstance(model, str) else model


def mark_summary(summary: BaseMessage) -> BaseMessage:
    """Return a copy that LangChain's tools know as a summary."""
    return summary.model_copy(update={"additional_kwargs": dict(SUMMARY_MARK)})


def guard_counter(counter: TokenCounter) -> TokenCounter:
    """Return the counter, with the default estimate if it fails.

    A count costs no answer.
    """

    def count(messages: Sequence[BaseMessage]) -> int:
        try:
            return counter(messages)
        except Exception:
            logger.exception("the token counter failed; counting by estimate")
            return count_tokens(messages)

    return count
