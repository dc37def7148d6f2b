"""Summaries of the oldest messages of a list, and the messages for the model.

As LangMem's module of this name; the state is the caller's `RunningSummary`.
"""

import asyncio
import json
import threading
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextvars import Context
from dataclasses import dataclass, field
from functools import wraps
from itertools import takewhile
from typing import Any, ParamSpec
from uuid import uuid4

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
)

from ...engine.cut_points import find_gaps, find_newest_question
from ...engine.exceptions import SummaryError
from ...engine.policy import LEAST_CHUNK, Policy
from ...engine.summaries import material, summarizer
from ...engine.tools import rounds
from .. import threads
from ..failures import is_overflow
from ..summarizers import ModelCaller, find_window
from .options import Options, find_slots

# Marks what `final_prompt` adds, so that it is not summarised where it comes back.
MARK = {"lc_source": "windowpane_summary"}
# The caller's prompts decide on the form of a summary, so the engine asks for none.
POLICY = Policy(
    preset="langmem", initial_prompt="the caller's", extend_prompt="the caller's"
)

Invoke = Callable[[list[BaseMessage]], Awaitable[Any]]


@dataclass
class RunningSummary:
    """The summary so far, which the next call extends."""

    summary: str
    summarized_message_ids: set[str]
    last_summarized_message_id: str | None


@dataclass
class SummarizationResult:
    """The messages for the model; `running_summary` is None before the first one."""

    messages: list[AnyMessage]
    running_summary: RunningSummary | None = None


@dataclass(eq=False)
class SummarizeCall(Options):
    """The arguments of `summarize_messages` and `asummarize_messages`.

    These summarise the oldest messages where they are due. They take two arguments, and
    the keywords of `Options`. Raises ValueError for a message without an id, and for
    one that is there again after it was summarised.
    """

    messages: list[AnyMessage]
    running_summary: RunningSummary | None = field(kw_only=True)

    def make_thread(self) -> "Thread":
        return Thread(self.messages, self.running_summary, self)


P = ParamSpec("P")


def _make_sync(make: Callable[P, SummarizeCall]) -> Callable[P, SummarizationResult]:
    # Its signature is that of the class, for `help()` and for type checkers.
    @wraps(make, assigned=["__doc__"], updated=[])
    def summarize_messages(*args: P.args, **options: P.kwargs) -> SummarizationResult:
        return make(*args, **options).make_thread().run()

    return summarize_messages


def _make_async(
    make: Callable[P, SummarizeCall],
) -> Callable[P, Awaitable[SummarizationResult]]:
    @wraps(make, assigned=["__doc__"], updated=[])
    async def asummarize_messages(
        *args: P.args, **options: P.kwargs
    ) -> SummarizationResult:
        return await make(*args, **options).make_thread().arun()

    return asummarize_messages


summarize_messages = _make_sync(SummarizeCall)
asummarize_messages = _make_async(SummarizeCall)


class Thread:
    """The messages of a call.

    Of `body`, those without the system messages, the running summary covers the first
    `covered`, and the next one will cover `cutoff`.
    """

    def __init__(
        self,
        messages: Sequence[BaseMessage],
        running: RunningSummary | None,
        options: Options,
    ) -> None:
        self.options = options
        self.running = running
        # The running summary in an earlier result is no message.
        others = [
            each for each in messages if not running or each.additional_kwargs != MARK
        ]
        self.system, body = threads.split_system(others)
        read, unread = self._split(body)
        self.body = [*read, *unread]
        self.covered = len(read)
        self.cutoff = self.covered + self._find_cutoff(unread)

    def run(self) -> SummarizationResult:
        made = None
        if self.cutoff > self.covered:
            try:
                call = ModelCaller(self.options.model)
                made = _run_summarizing(self.write_summary(call), self.options.timeout)
            except Exception as error:  # noqa: BLE001 - of the caller's model
                self.options.failures.report_failure(error)
        return self.make_result(made)

    async def arun(self) -> SummarizationResult:
        made = None
        if self.cutoff > self.covered:
            summarizing = self.write_summary(self.options.model.ainvoke)
            # As in `_run_summarizing`, no callback of the graph's run is inherited.
            task = asyncio.create_task(summarizing, context=Context())
            try:
                made = await asyncio.wait_for(task, self.options.timeout)
            except Exception as error:  # noqa: BLE001 - of the caller's model
                self.options.failures.report_failure(error)
        return self.make_result(made)

    async def write_summary(self, invoke: Invoke) -> RunningSummary:
        """Return the summary extended to the cutoff.

        Raises SummaryError, or the model's error.
        """
        leaving = self.body[self.covered : self.cutoff]
        known = self.running or RunningSummary("", set(), None)
        limit = self._find_chunk_tokens(known.summary)
        try:
            text = await self._write(invoke, leaving, known.summary, limit)
        except Exception as error:
            if not is_overflow(error):
                raise
            # Too much for the summariser, so all of it is read in smaller pieces.
            text = await self._write(invoke, leaving, known.summary, limit // 4)
        ids = {message.id for message in leaving}
        return RunningSummary(text, known.summarized_message_ids | ids, leaving[-1].id)

    def make_result(self, made: RunningSummary | None) -> SummarizationResult:
        """Return the messages for the model, with the new summary, if there is one."""
        messages = self._show(self.cutoff if made else self.covered)
        running = made or self.running
        if running is None:
            return SummarizationResult([*self.system, *messages])
        prompt = self.options.final_prompt
        values = {"summary": running.summary, "messages": messages}
        shown = prompt.invoke(values | {"system_message": self.system}).to_messages()
        own = {id(message) for message in (*self.system, *messages)}
        added = {"additional_kwargs": MARK}
        shown = [
            each if id(each) in own else each.model_copy(update=added) for each in shown
        ]
        if "system_message" not in find_slots(prompt):
            shown = [*self.system, *shown]
        return SummarizationResult(shown, running)

    def _split(
        self, body: Sequence[BaseMessage]
    ) -> tuple[list[BaseMessage], list[BaseMessage]]:
        """Return the messages that the running summary covers, and the others.

        Raises ValueError.
        """
        ids = [each.id for each in body]
        known = self.running.summarized_message_ids if self.running else set()
        last = self.running and self.running.last_summarized_message_id
        if last is not None and last in ids:
            start = ids.index(last) + 1
        else:
            # The last message was removed. A second message with a known id was not
            # read.
            left = set(known)
            read = takewhile(lambda id_: id_ in left and not left.discard(id_), ids)
            start = len(list(read))
        if again := known.intersection(ids[start:]):
            id_ = min(again)
            raise ValueError(f"Message with ID {id_} has already been summarized.")
        # Messages that were later inserted between summarised ones were not read
        # either.
        unread = [each for each in body if each.id not in known]
        if any(each.id is None for each in unread):
            raise ValueError("Messages are required to have ID field.")
        return [each for each in body if each.id in known], unread

    def _find_cutoff(self, window: Sequence[BaseMessage]) -> int:
        """Return how many messages of the window to summarise; 0 if none is due."""
        options, count = self.options, self.options.token_counter
        if count(window) < options.least:
            return 0
        ends = find_gaps(window)[1:]
        first = bisect_left(ends, options.least, key=lambda n: count(window[:n]))
        ends = ends[first:]
        if not ends:
            return 0
        room = options.max_tokens - options.max_summary_tokens - count(self.system)
        fits = bisect_left(
            ends, True, key=lambda n: count(self._show(self.covered + n)) <= room
        )
        return ends[min(fits, len(ends) - 1)]

    def _show(self, start: int) -> list[BaseMessage]:
        """Return the messages from `start` on, and always the newest user message."""
        asked = find_newest_question(self.body)
        question = self.body[asked : asked + 1] if asked < start else []
        kept = self.body[start:]
        last = kept[-1:]
        # A last call still waits for its results.
        is_open = any(isinstance(each, AIMessage) and each.tool_calls for each in last)
        open_call = last if is_open else []
        answered = kept[: len(kept) - len(open_call)]
        repaired = rounds.repair_rounds(answered)
        for message in repaired:
            # A placeholder of a missing result gets an id: it may be summarised later.
            message.id = message.id or str(uuid4())
        return [*question, *repaired, *open_call]

    def _find_chunk_tokens(self, previous: str) -> int:
        """Return the tokens of messages that one request of the summariser may have."""
        window = find_window(self.options.model) or 0
        most = max(self.options.max_tokens, window // 2)
        most -= self.options.token_counter([SystemMessage(previous)])
        return max(most, LEAST_CHUNK)

    async def _write(
        self, invoke: Invoke, leaving: Sequence[BaseMessage], previous: str, limit: int
    ) -> str:
        async def ask(request: list[BaseMessage]) -> AIMessage:
            document = json.loads(request[-1].text)
            reply = await invoke(self._make_request(document, leaving))
            if getattr(reply, "tool_calls", None):
                raise SummaryError("The model called a tool instead of summarising.")
            # A completion model returns a str.
            text = str(getattr(reply, "text", reply))
            return reply if isinstance(reply, AIMessage) else AIMessage(text)

        limits = {
            "max_summary_tokens": self.options.max_summary_tokens,
            "chunk_tokens": limit,
        }
        made = await summarizer.summarize_window(
            ask,
            threads.number_messages(leaving, 1),
            previous=previous,
            policy=POLICY.model_copy(update=limits),
            count_tokens=self.options.token_counter,
            chunk_tokens=limit,
        )
        return made.text

    def _make_request(
        self, document: dict[str, Any], leaving: Sequence[BaseMessage]
    ) -> list[BaseMessage]:
        """Return the engine's request in the form of LangMem's prompts.

        Messages are sent as they are if a provider accepts them so; parts of long ones,
        calls without results and embedded pictures as the engine describes them.
        """
        if parts := document.get("summaries"):
            # Summaries of parts, to be merged: LangMem has no prompt for that.
            messages = [HumanMessage(material.dump_json(each)) for each in parts]
            prompt = self.options.initial_summary_prompt
            return prompt.invoke({"messages": messages}).to_messages()
        read = document["messages"]
        messages = [leaving[each["n"] - 1] for each in read if "part" not in each]
        is_text = all(isinstance(message.content, str) for message in messages)
        is_whole = is_text and len(messages) == len(read)
        if not is_whole or rounds.repair_rounds(messages) != messages:
            messages = [HumanMessage(material.dump_json(each)) for each in read]
        if not (previous := document["previous_summary"]):
            prompt = self.options.initial_summary_prompt
            return prompt.invoke({"messages": messages}).to_messages()
        values = {"messages": messages, "existing_summary": previous}
        return self.options.existing_summary_prompt.invoke(values).to_messages()


def _run_summarizing(
    summarizing: Coroutine[Any, Any, RunningSummary], timeout: float
) -> RunningSummary:
    """Return the result of a coroutine that may block; raise TimeoutError.

    It runs in a thread of its own: the caller may be inside an event loop, and no
    callback of the graph's run is inherited, so no token of a summary is streamed.
    """
    future: Future[RunningSummary] = Future()

    def run() -> None:
        try:
            future.set_result(asyncio.run(summarizing))
        except BaseException as error:  # noqa: BLE001 - raised where it is awaited
            future.set_exception(error)

    # A daemon: a hanging call must not keep the process from ending.
    threading.Thread(target=run, name="windowpane_summary", daemon=True).start()
    return future.result(timeout)
