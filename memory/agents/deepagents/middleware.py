"""Deep Agents' `SummarizationMiddleware`, with a file of all summarised messages."""

import asyncio
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Literal

from langchain.agents.middleware.types import (
    AgentState,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
)
from langchain.tools import ToolRuntime
from langchain_core.messages import BaseMessage, ToolMessage
from langgraph.types import Command

from ...engine.policy import Clause, Policy
from .. import langchain, threads
from ..compaction import ThreadTask
from ..middleware import mark_summary
from ..view import AgentView
from .arguments import ArgumentCutter, TruncateArgsSettings
from .backend import Backend, FileCaller
from .history import (
    EVENT,
    SESSION,
    HistorySession,
    SummarizationState,
    add_pointer,
    read_event,
    to_memory,
)

logger = logging.getLogger(__name__)

NOTHING = "Nothing to compact yet: the conversation is within the token budget."
FAILED = (
    "Compaction failed: an error occurred while generating the summary ({}). The "
    "conversation has not been compacted: no messages were summarized or removed."
)
LATE = "The conversation is being compacted, which takes longer than usual."
DONE = "Conversation compacted. Summarized {} messages into a concise summary."


@dataclass(kw_only=True, eq=False, repr=False)
class SummarizationMiddleware(langchain.SummarizationMiddleware):
    """Deep Agents' class, with `history_path_prefix`, the folder of history files.

    As in Deep Agents, the call that triggers a summary waits for it.

    Each thread has a session id in its private state, which is the name of its file and
    of its memory: agents that work for another one have its thread id.
    """

    state_schema = SummarizationState

    backend: Backend
    truncate_args_settings: TruncateArgsSettings | None = None
    history_path_prefix: str = ""
    when: Literal["before"] = field(default="before", init=False)
    background: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        root = getattr(self.backend, "artifacts_root", "/").rstrip("/")
        folder = self.history_path_prefix or f"{root}/conversation_history"
        self.history_path_prefix = folder.rstrip("/")

    def wrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]
    ) -> ModelResponse | ExtendedModelResponse:
        session = self._open_session(request.state, request.messages)

        def send(sent: ModelRequest) -> ModelResponse:
            self._record(session, FileCaller(self.backend))
            return handler(sent.override(messages=session.show_file(sent.messages)))

        request = request.override(state={**request.state, SESSION: session.id})
        return _extend_response(super().wrap_model_call(request, send), session)

    async def awrap_model_call(
        self,
        request: ModelRequest,
        handler: Callable[[ModelRequest], Awaitable[ModelResponse]],
    ) -> ModelResponse | ExtendedModelResponse:
        files = FileCaller(self.backend, asyncio.get_running_loop())
        session = await asyncio.to_thread(
            self._open_session, request.state, request.messages
        )

        async def send(sent: ModelRequest) -> ModelResponse:
            await asyncio.to_thread(self._record, session, files)
            return await handler(
                sent.override(messages=session.show_file(sent.messages))
            )

        request = request.override(state={**request.state, SESSION: session.id})
        return _extend_response(await super().awrap_model_call(request, send), session)

    def compact_thread(self, runtime: ToolRuntime) -> Command:
        """Summarise now what would be summarised at half of the trigger.

        The result tells the model what happened; nothing is raised.
        """
        session, job = self._start_now(runtime)
        self._wait(job)
        return self._report(session, runtime, FileCaller(self.backend))

    async def acompact_thread(self, runtime: ToolRuntime) -> Command:
        files = FileCaller(self.backend, asyncio.get_running_loop())
        session, job = await asyncio.to_thread(self._start_now, runtime)
        await self._wait_async(job)
        return await asyncio.to_thread(self._report, session, runtime, files)

    def _find_thread(self, state: AgentState, body: Sequence[BaseMessage]) -> str:
        return threads.thread_key(state[SESSION])

    def _adapt(self, view: AgentView, request: ModelRequest, beside: int) -> AgentView:
        # The words that name the file are counted even if it can't be written.
        path = self._find_path(request.state[SESSION])
        view = add_pointer(view, path, self.count_tokens)
        settings = self.truncate_args_settings or {}
        window = self._find_window(request)
        cutter = ArgumentCutter(settings, self.count_tokens, window)
        return cutter.cut_arguments(view, beside)

    def _find_path(self, session_id: str) -> str:
        return f"{self.history_path_prefix}/{session_id}.md"

    def _open_session(
        self, state: AgentState, messages: Sequence[BaseMessage]
    ) -> HistorySession:
        id_ = state.get(SESSION)
        id_ = id_ if isinstance(id_, str) and id_ else f"session_{uuid.uuid4().hex}"
        thread = threads.thread_key(id_)
        memory = self._load(thread)
        event = read_event(state.get(EVENT), messages)
        if event and not memory.segments:
            # Another process, or Deep Agents itself, has made this summary.
            told = to_memory(event, messages, version=memory.version + 1)
            try:
                if self.store.save(thread, told, seen=memory.version):
                    memory = told
            except Exception:
                # The messages are sent as they are, and summarised again.
                logger.exception("the memory of thread=%s cannot be stored", thread)
        return HistorySession(
            id_, self._find_path(id_), messages, event, memory.version
        )

    def _record(self, session: HistorySession, files: FileCaller) -> None:
        if self._compactor.is_running(session.thread):
            # Its summary is too late for this call; the next one must find it.
            session.update[SESSION] = session.id
        memory = self._load(session.thread)
        session.record_summary(memory, files)

    def _start_now(self, runtime: ToolRuntime) -> tuple[HistorySession, Future[None]]:
        session = self._open_session(runtime.state, runtime.state["messages"])
        _, body = threads.split_system(session.messages)
        last = self._last.get(session.thread) or ThreadTask(
            session.thread, (), self.policy
        )
        task = replace(last, body=body, policy=halve_trigger(last.policy))
        return session, self._compactor.start_task(task)

    def _report(
        self, session: HistorySession, runtime: ToolRuntime, files: FileCaller
    ) -> Command:
        before = session.event["cutoff_index"] if session.event else 0
        self._record(session, files)
        memory = self._load(session.thread)
        if EVENT in session.update:
            text = DONE.format(session.update[EVENT]["cutoff_index"] - before)
            view = self._viewer.compose_view(session.messages, memory, self.policy)
            session.show_file(
                [mark_summary(each) for each in view.context.get_section("summaries")]
            )
        elif self._compactor.is_running(session.thread):
            text = LATE
        elif memory.rest_until > time.time():
            text = FAILED.format(memory.records[-1].error)
        else:
            text = NOTHING
        result = ToolMessage(text, tool_call_id=runtime.tool_call_id or "")
        return Command(update=session.update | {"messages": [result]})


def halve_trigger(policy: Policy) -> Policy:
    """Return the policy with half of its trigger."""

    def halve_clause(clause: Clause) -> Clause:
        return tuple(
            (kind, amount / 2 if kind == "fraction" else max(1, int(amount) // 2))
            for kind, amount in clause
        )

    return policy.model_copy(
        update={"trigger": tuple(map(halve_clause, policy.trigger))}
    )


def _extend_response(
    response: ModelResponse, session: HistorySession
) -> ModelResponse | ExtendedModelResponse:
    """Return the response, with the changes of the state."""
    if not session.update:
        return response
    return ExtendedModelResponse(response, Command(update=session.update))
