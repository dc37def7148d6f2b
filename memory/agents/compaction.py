"""Compacts the threads of an agent, each in a thread of the process's own.

The core is async and runs in an event loop that ends with the compaction, so an agent
may be called with or without `await`. A failure changes nothing but when to try again.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from concurrent import futures
from dataclasses import asdict, dataclass, replace
from threading import Lock
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from memory.engine import plan
from memory.engine.compaction import MemoryState
from memory.engine.policy import Policy
from memory.engine.tokens import TokenCounter, count_text

from . import threads
from .stores import CompactionRecord, MemoryStore, Segment, ThreadMemory
from .summarizers import Writer

logger = logging.getLogger(__name__)

# Threads that are compacted at the same time; more wait for their turn.
WORKERS = 4
LONGEST_REST = 3600.0
# Providers whose messages give another name than their models.
ALIASES = {"amazon_bedrock": ("bedrock", "bedrock_converse")}


@dataclass(frozen=True, slots=True)
class Task:
    """A thread to be compacted, as it was when the agent had answered."""

    thread: str
    body: list[BaseMessage]
    overhead: int
    force: bool


class Compactor:
    """Runs the compactions, at most one of a thread at a time."""

    def __init__(
        self,
        policy: Policy,
        writer: Writer,
        store: MemoryStore,
        count_tokens: TokenCounter,
        *,
        context_window: int | None,
        backoff: float,
        provider: str = "",
    ) -> None:
        self.policy = policy
        self.writer = writer
        self.store = store
        self.count_tokens = count_tokens
        self.context_window = context_window
        self.backoff = backoff
        self.provider = provider
        self._jobs: dict[str, futures.Future[None]] = {}
        self._waiting: dict[str, Task] = {}
        self._lock = Lock()
        self._workers = futures.ThreadPoolExecutor(WORKERS, "windowpane")

    def start(
        self,
        thread: str,
        body: list[BaseMessage],
        *,
        overhead: int = 0,
        force: bool = False,
    ) -> futures.Future[None]:
        """Begin to compact the thread; if that is under way, once more when it is done.

        `overhead` is what a request holds beside the window, in tokens.
        """
        task = Task(thread, body, overhead, force)
        with self._lock:
            if job := self._jobs.get(thread):
                # Only the newest matters: its messages hold those of the others.
                self._waiting[thread] = task
                return job
            try:
                job = self._jobs[thread] = self._workers.submit(self._run, task)
            except RuntimeError:
                # Closed. The answer was given all the same, and nothing is lost.
                job = futures.Future()
                job.set_result(None)
        return job

    def wait(self, timeout: float | None = None) -> None:
        """Until no compaction is under way."""
        with self._lock:
            jobs = list(self._jobs.values())
        futures.wait(jobs, timeout)

    def close(self) -> None:
        """Finish the compactions that have begun."""
        self._workers.shutdown()

    def _run(self, task: Task | None) -> None:
        while task:
            try:
                asyncio.run(self._compact(task))
            except Exception:
                logger.exception("compaction broke thread=%s", task.thread)
            task = self._next(task.thread)

    def _next(self, thread: str) -> Task | None:
        with self._lock:
            task = self._waiting.pop(thread, None)
            if task is None:
                del self._jobs[thread]
            return task

    async def _compact(self, task: Task) -> None:
        while await self._compact_once(task):
            task = replace(task, force=False)

    async def _compact_once(self, task: Task) -> bool:
        """Make one summary and store it. False: nothing due, failed, or overtaken."""
        memory = self.store.load(task.thread)
        if memory.rest_until > time.time():
            return False
        active = threads.find_active(memory, task.body)
        state = _state(self.policy, memory, active, task.body)
        step = state.next_step(
            count_tokens=self.count_tokens,
            overhead=task.overhead,
            context_window=self.context_window,
            reported=_reported_tokens(state.window, self.provider),
            force=task.force,
        )
        if step is None:
            return False
        messages = _to_read(step, task.body)
        record = self._record(state, step)
        try:
            made = await self.writer.write(step, messages)
        except Exception as error:  # noqa: BLE001 - somebody else's model or function
            # The text of a provider's error may hold a key; its name does not.
            name = type(error).__name__
            logger.warning("compaction failed thread=%s error=%s", task.thread, name)
            failed = memory.failed(replace(record, error=name), self._rest(memory))
            self.store.save(task.thread, failed, seen=memory.version)
            return False
        segments = _segments(active, state.apply(step, made.text), step, task.body)
        found = asdict(made)
        found.pop("requests")
        record = replace(record, tokens_after=count_text(made.text), **found)
        compacted = memory.compacted(segments, record)
        return self.store.save(task.thread, compacted, seen=memory.version)

    def _record(self, state: MemoryState, step: plan.Step) -> CompactionRecord:
        """What is known of a step before its summary is written."""
        read = step.messages if isinstance(step, plan.Compaction) else ()
        size = self.count_tokens(read) + sum(block.tokens for block in step.replaces)
        return CompactionRecord(
            version=state.version + 1,
            level=step.level,
            first_seq=step.first_seq,
            last_seq=step.last_seq,
            trigger=(step.trigger.kind, step.trigger.value, step.trigger.limit),
            replaced=tuple(block.version for block in step.replaces),
            tokens_before=size,
            tokens_after=size,
        )

    def _rest(self, memory: ThreadMemory) -> float:
        return time.time() + min(self.backoff * 2**memory.failures, LONGEST_REST)


def _state(
    policy: Policy,
    memory: ThreadMemory,
    active: Sequence[Segment],
    body: Sequence[BaseMessage],
) -> MemoryState:
    blocks = tuple(segment.block for segment in active)
    state = MemoryState(policy, blocks, version=len(memory.records))
    return state.add(*threads.number(body[state.cutoff :], state.cutoff + 1))


def _segments(
    active: Sequence[Segment],
    state: MemoryState,
    step: plan.Step,
    body: Sequence[BaseMessage],
) -> tuple[Segment, ...]:
    """Every summary of the new state, with the digest that proves it."""
    (digest,) = threads.digest_prefixes(body, [step.last_seq])
    known = {segment.block.version: segment.digest for segment in active}
    return tuple(
        Segment(block, known.get(block.version, digest)) for block in state.blocks
    )


def _to_read(step: plan.Step, body: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    if isinstance(step, plan.Compaction):
        return step.messages
    return threads.number(body[step.first_seq - 1 : step.last_seq], step.first_seq)


def _reported_tokens(window: Sequence[BaseMessage], provider: str) -> int:
    """The size of the last request and its answer as the provider counted them; another
    provider than the model's counts in tokens of its own."""
    answers = (each for each in reversed(window) if isinstance(each, AIMessage))
    answer = next(answers, None)
    usage = getattr(answer, "usage_metadata", None)
    if not usage or not _is_of(provider, answer.response_metadata):
        return 0
    return usage["total_tokens"]


def _is_of(provider: str, metadata: dict[str, Any]) -> bool:
    """Whether a reply comes from this provider, as far as both are known."""
    told = metadata.get("model_provider", "")
    names = {provider, provider.removesuffix("-mantle"), *ALIASES.get(provider, ())}
    return not provider or not told or told in names
