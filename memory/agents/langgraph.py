"""The memory as nodes for a LangGraph graph.

The messages of the state are never rewritten. `summarize` keeps its summaries in the
state's `memory`, so a checkpointer keeps them too; `build_context` writes the messages
for the model to `context`.
"""

import time
from collections.abc import Callable
from concurrent import futures
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import MessagesState
from typing_extensions import TypedDict

from ..engine import budget
from ..engine.policy import Policy
from ..engine.tokens import TokenCounter, count_tokens
from . import threads
from .compaction import Compactor, ThreadTask
from .failures import Failures, OnFailure
from .middleware import CEILING, ChoosePolicy, guard_counter, load_model
from .stores import InMemoryStore, ThreadMemory
from .summarizers import Summarizer, find_provider, find_window, make_writer
from .view import AgentView, Viewer


class ModelContext(TypedDict):
    """The messages for the model.

    LangGraph streams the messages that a node writes to a key of the state, and no
    summary is one of the conversation, so this is a dict.
    """

    messages: list[AnyMessage]


class ContextState(MessagesState, total=False):
    """The state that the nodes read and write.

    A graph they are added to has these keys, whether its own state names them or not.

    `memory`: the summaries and the records of all compactions, as JSON.
    """

    memory: dict[str, Any]
    context: ModelContext


Node = Callable[[ContextState, RunnableConfig], dict[str, Any]]


def build_context(
    policy: Policy | ChoosePolicy | None = None,
    *,
    context_window: int | None = None,
    overhead: int = 0,
    token_counter: TokenCounter = count_tokens,
) -> Node:
    """Return a node that writes `context["messages"]`: summaries, then the window.

    It has at most 95 % of `context_window` (or `policy.context_window`) in tokens, less
    the `overhead` that the call to the model adds: a system prompt, tools.
    """
    look = _Look(policy, context_window, overhead, token_counter)

    def build_context(state: ContextState, config: RunnableConfig) -> dict[str, Any]:
        view, task = look(state, config)
        messages = view.context.messages
        if task.limit is not None and view.tokens > task.limit:
            messages = look.viewer.squeeze_view(view, task.limit)
        return {"context": {"messages": messages}}

    return build_context


def summarize(
    model: str | Summarizer,
    policy: Policy | ChoosePolicy | None = None,
    *,
    context_window: int | None = None,
    overhead: int = 0,
    token_counter: TokenCounter = count_tokens,
    timeout: float = 60.0,
    backoff: float = 30.0,
    on_failure: OnFailure | None = None,
) -> Node:
    """Return a node that summarises what the policy says, and writes `memory`.

    It may stand before or after the call to the model, and does nothing while nothing
    is due. A failure is recorded in the memory, and `on_failure` gets its error; for
    `backoff` seconds, doubled each time, there is no new attempt. The node waits for
    `timeout` seconds at most.
    """
    model = load_model(model)
    look = _Look(policy, context_window or find_window(model), overhead, token_counter)
    writer = make_writer(model, look.count_tokens)
    failures = Failures(on_failure)

    def summarize(state: ContextState, config: RunnableConfig) -> dict[str, Any]:
        _, task = look(state, config)
        known = load_memory(state)
        store = InMemoryStore()
        store.save(task.thread, known, seen=0)
        job = Compactor(
            writer,
            store,
            look.count_tokens,
            context_window=look.context_window,
            backoff=backoff,
            provider=find_provider(model),
            failures=failures,
        ).start_task(task)
        is_late = futures.wait([job], timeout).not_done
        memory = store.load(task.thread)
        if is_late:
            memory = replace(memory, rest_until=time.time() + backoff)
        return {} if memory == known else {"memory": memory.dump()}

    return summarize


def load_memory(state: ContextState) -> ThreadMemory:
    """Return the summaries of a state, and the records of all compactions."""
    memory = state.get("memory")
    return ThreadMemory.load(memory) if memory else ThreadMemory()


@dataclass(eq=False)
class _Look:
    """The view of the nodes on a state: its thread, and the task to compact it."""

    policy: Policy | ChoosePolicy | None
    context_window: int | None
    overhead: int
    token_counter: TokenCounter

    def __post_init__(self) -> None:
        self.policy = self.policy or Policy()
        self.count_tokens = guard_counter(self.token_counter)
        self.viewer = Viewer(self.count_tokens)

    def __call__(
        self, state: ContextState, config: RunnableConfig
    ) -> tuple[AgentView, ThreadTask]:
        fixed = isinstance(self.policy, Policy)
        policy = self.policy if fixed else self.policy(state, config)
        limit = room = None
        if window := policy.context_window or self.context_window:
            limit = max(1, int(window * CEILING) - self.overhead)
            policy = budget.cap_policy(policy, limit)
        view = self.viewer.compose_view(state["messages"], load_memory(state), policy)
        if limit is not None:
            room = budget.for_window(policy, limit, view.around, is_waiting=False)
        thread = threads.find_thread(view.body)
        overhead = self.overhead + view.around
        return view, ThreadTask(thread, view.body, policy, overhead, limit, room)
