"""Compactions of an agent's threads, in worker threads of the process.

A summary is written in an event loop of its own, so an agent may be called with or
without `await`; stores are called where none runs. A failure changes nothing but the
time of the next attempt.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from concurrent import futures
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from threading import Lock

from langchain_core.messages import AIMessage, BaseMessage

from ..engine import budget
from ..engine.compaction import MemoryState
from ..engine.compose import compose_context, make_fence
from ..engine.exceptions import OverlongSummary
from ..engine.plan import Compaction, Step
from ..engine.policy import Policy
from ..engine.tokens import TokenCounter, count_text
from . import threads
from .failures import Failures
from .stores import CompactionRecord, MemoryStore, SummarySegment
from .summarizers import Writer

logger = logging.getLogger(__name__)

# The most threads that are compacted at the same time; others wait.
WORKERS = 4
LONGEST_REST = 3600.0
# The largest share of a request that the summaries may take.
MOST_SUMMARIES = 2 / 3
# Providers whose messages have another name than their models.
ALIASES = {"amazon_bedrock": ("bedrock", "bedrock_converse")}


@dataclass(frozen=True, slots=True)
class ThreadTask:
    """A thread to be compacted, as it was when that became due.

    `overhead` is what a request holds beside the window, in tokens; `limit` what all
    its messages may have, where that is known. `window` and `provider` are those of the
    request's model, which a router may have chosen.
    """

    thread: str
    body: Sequence[BaseMessage]
    policy: Policy
    overhead: int = 0
    limit: int | None = None
    room: int | None = None
    force: bool = False
    window: int | None = None
    provider: str = ""


@dataclass(eq=False)
class Compactor:
    """The compactions of an agent, at most one of a thread at a time.

    `context_window` and `provider` are those of tasks that do not say.
    """

    writer: Writer
    store: MemoryStore
    count_tokens: TokenCounter
    _: KW_ONLY
    context_window: int | None
    backoff: float
    provider: str = ""
    failures: Failures = field(default_factory=Failures)

    def __post_init__(self) -> None:
        self._jobs: dict[str, futures.Future[None]] = {}
        self._waiting: dict[str, ThreadTask] = {}
        self._lock = Lock()
        self._workers = futures.ThreadPoolExecutor(WORKERS, "windowpane")

    def start_task(self, task: ThreadTask) -> futures.Future[None]:
        """Begin to compact the thread; if that is under way, again when it is done."""
        thread = task.thread
        with self._lock:
            if job := self._jobs.get(thread):
                # Only the newest matters: its messages hold those of the others.
                self._waiting[thread] = task
                return job
            try:
                job = self._jobs[thread] = self._workers.submit(self._run, task)
            except RuntimeError:
                # The pool is closed. The answer was sent, and nothing is lost.
                job = futures.Future()
                job.set_result(None)
        return job

    def is_running(self, thread: str) -> bool:
        with self._lock:
            return thread in self._jobs

    def wait_for_all(self, timeout: float | None = None) -> None:
        """Wait until no compaction is under way."""
        with self._lock:
            jobs = list(self._jobs.values())
        futures.wait(jobs, timeout)

    def close(self) -> None:
        """Finish the compactions that have begun."""
        self._workers.shutdown()

    def _run(self, task: ThreadTask) -> None:
        waiting: ThreadTask | None = task
        while waiting:
            try:
                self._compact(waiting)
            except Exception:
                logger.exception("compaction broke thread=%s", task.thread)
            with self._lock:
                waiting = self._waiting.pop(task.thread, None)
                if waiting is None:
                    del self._jobs[task.thread]

    def _compact(self, task: ThreadTask) -> None:
        while self._compact_once(task):
            task = replace(task, force=False)

    def _compact_once(self, task: ThreadTask) -> bool:
        """Make one summary and store it.

        Return False if nothing is due, if it failed, or if another process was faster.
        """
        memory = self.store.load(task.thread)
        if memory.rest_until > time.time():
            return False
        active = threads.find_active(memory, task.body)
        blocks = tuple(segment.block for segment in active)
        state = MemoryState(task.policy, blocks, version=len(memory.records))
        window = threads.number_messages(task.body[state.cutoff :], state.cutoff + 1)
        state = state.add_messages(*window)
        step = state.next_step(
            count_tokens=self.count_tokens,
            overhead=task.overhead,
            context_window=task.window or self.context_window,
            reported=reported_tokens(window, task.provider or self.provider),
            force=task.force,
            room=task.room,
            rounds=True,
            most_summaries=budget.most_summaries(task.limit) if task.limit else None,
        )
        if step is None:
            return False
        leaving: Sequence[BaseMessage] = ()
        if isinstance(step, Compaction):
            messages = leaving = step.messages
        else:
            covered = task.body[step.first_seq - 1 : step.last_seq]
            messages = threads.number_messages(covered, step.first_seq)
        size = self.count_tokens(leaving) + sum(each.tokens for each in step.replaces)
        record = describe_step(step, state.version + 1, size)
        try:
            made = asyncio.run(self.writer.write(step, messages, task.policy))
            after = state.apply_step(step, made.text)
            self._check_size(after, task)
        except Exception as error:  # noqa: BLE001 - the model or function of the caller
            # The text of a provider's error may hold a key; its name does not.
            record = replace(record, error=type(error).__name__)
            rest = min(self.backoff * 2**memory.failures, LONGEST_REST)
            failed = memory.add_failure(record, time.time() + rest)
            self.store.save(task.thread, failed, seen=memory.version)
            self.failures.report_failure(error, task.thread)
            return False
        found = asdict(made)
        found.pop("requests")
        record = replace(record, tokens_after=count_text(made.text), **found)
        # Every summary of the new state, with the digest that proves it.
        digests = {segment.block.version: segment.digest for segment in active}
        (new,) = threads.digest_prefixes(task.body, [step.last_seq])
        segments = tuple(
            SummarySegment(block, digests.get(block.version, new))
            for block in after.blocks
        )
        compacted = memory.add_compaction(segments, record)
        return self.store.save(task.thread, compacted, seen=memory.version)

    def _check_size(self, state: MemoryState, task: ThreadTask) -> None:
        """Raise OverlongSummary if the summaries leave too little room for messages."""
        fence = make_fence(task.policy.final_prompt)
        shown = compose_context(
            system_prompt="", blocks=state.blocks, fence=fence
        ).messages
        if task.limit and self.count_tokens(shown) > task.limit * MOST_SUMMARIES:
            raise OverlongSummary("The summaries are too long for the model's window.")


def describe_step(step: Step, version: int, size: int) -> CompactionRecord:
    """Return the record of a step of `size` tokens, before its summary is made."""
    return CompactionRecord(
        version=version,
        level=step.level,
        first_seq=step.first_seq,
        last_seq=step.last_seq,
        trigger=(step.trigger.kind, step.trigger.value, step.trigger.limit),
        replaced=tuple(block.version for block in step.replaces),
        tokens_before=size,
        tokens_after=size,
    )


def reported_tokens(window: Sequence[BaseMessage], provider: str) -> int:
    """Return the size of the last request and its answer, as its provider counted.

    0 if another provider than the model's reported it: that one counts in tokens of its
    own.
    """
    answers = (each for each in reversed(window) if isinstance(each, AIMessage))
    answer = next(answers, None)
    usage = getattr(answer, "usage_metadata", None)
    if not usage:
        return 0
    told = answer.response_metadata.get("model_provider", "")
    names = {provider, provider.removesuffix("-mantle"), *ALIASES.get(provider, ())}
    is_other = provider and told and told not in names
    return 0 if is_other else usage["total_tokens"]
