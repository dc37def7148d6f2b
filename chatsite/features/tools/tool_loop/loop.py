"""The loop of a turn that calls tools, from request to calls and back.

What is to be done next is read from the tables, and what a model is sent is built from
them for each request, so any process can go on where another one ended. LangGraph's
tool node checks the arguments of a call and runs its tool.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import asdict, replace
from time import monotonic
from typing import Any, NamedTuple

from django.conf import settings
from langchain_core.messages import ToolMessage
from langchain_core.tools import ToolException
from langgraph.prebuilt import ToolNode
from langgraph.runtime import Runtime

from chatsite import metrics
from chatsite.features.tools import registry
from chatsite.features.tools.builtin.tool_search import callable_tools
from chatsite.features.tools.context import (
    AnswerLostError,
    CallProgress,
    PendingResult,
    conversation_id,
    user_id,
)
from chatsite.features.tools.events import ToolEvent
from chatsite.features.tools.models import ToolCall
from chatsite.llm.dialects import Tools
from chatsite.protocol import events
from chatsite.turns import attempt, checkpoints
from chatsite.turns.attempt import MakeRoom
from chatsite.turns.lifecycle import TurnClaim, TurnResult
from chatsite.turns.models import Turn
from memory.database import TRANSIENT_DB_ERRORS, name_of, retry
from memory.engine.blank import is_blank
from memory.leases import LeaseStatus

from . import answers, call_context, call_requests, records, summaries
from .answers import CallAnswer, NoRoomError
from .progress import Reports
from .records import SettledCalls

logger = logging.getLogger(__name__)

# Limits of a turn, whatever the settings say.
MAX_ROUNDS, MAX_CALLS = 60, 90
# Calls of one reply that run at the same time.
PARALLEL = 8
# The beginning of LangChain's message on wrong arguments.
MISFIT = "Error invoking tool"

BAD_ARGUMENTS = "No result: the arguments of the call were no JSON object."
SWITCHED_OFF = "No result: the tool is switched off on this site for now."
TOO_SLOW = "No result: the tool did not answer within {seconds:g} s."
PERHAPS = "It may have run."

State = ToolCall.State
# Tools that do not end when they are cancelled; the event loop keeps weak references.
_left_alone: set[asyncio.Future[Any]] = set()


async def run(
    claim: TurnClaim,
    turn: Turn,
    make_room: MakeRoom,
    tell_news: Callable[[Turn, str], None],
) -> tuple[TurnClaim, TurnResult] | None:
    """Run an attempt of a turn with tools, and return its end as run_attempt() does.

    `tell_news` notifies the user that the turn waits for them.
    """
    await registry.ready()
    return await ToolLoop(claim, turn, make_room, tell_news).run()


class NextRequest(NamedTuple):
    """A request that is ready to be sent; the last one is answered without tools."""

    request: attempt.Request | TurnResult
    is_last: bool


class ToolLoop:
    """One attempt of a turn with tools.

    Once it is over nothing more is begun; an attempt without a result was lost or waits
    for consent.
    """

    def __init__(
        self,
        claim: TurnClaim,
        turn: Turn,
        make_room: MakeRoom,
        tell_news: Callable[[Turn, str], None],
    ) -> None:
        self.claim = claim
        self._turn = turn
        self._make_room = make_room
        self._tell_news = tell_news
        names = turn.conversation.tools
        self._site_tools = registry.list_callable(names)
        self._node = ToolNode([each.tool for each in self._site_tools])
        self._offered, self._offer = (), Tools()
        self._result: TurnResult | None = None
        self._over = asyncio.Event()
        # Calls that the site answered, and that are not published yet.
        self._answered: list[ToolCall] = []
        self._running: set[asyncio.Future[Any]] = set()
        self._places = asyncio.Semaphore(PARALLEL)

    async def run(self) -> tuple[TurnClaim, TurnResult] | None:
        async with events.stop_hints(self.claim.row_id) as stop:
            guard = asyncio.create_task(self._guard(stop))
            try:
                while calls := await self._find_calls():
                    await asyncio.gather(*map(self._run_in_its_place, calls))
            finally:
                self._end()  # for calls beside one that raised an error of the site
                guard.cancel()
                await asyncio.gather(guard, return_exceptions=True)
        return (self.claim, self._result) if self._result else None

    async def _find_calls(self) -> list[ToolCall]:
        """Return the calls to run now; none if the attempt is over."""
        while not self._over.is_set():
            found = await self._write(self._prepare_next)
            if found is None:
                self._end()
                break
            settled, following = found
            answered, self._answered = self._answered, []
            await self._tell(answered)
            if following:
                calls = await self._ask(following)
                if settled.calls + len(calls) <= max_calls():
                    return calls
                continue
            asked_for = [c for c in settled.still_open if c.state == State.ASKED]
            if asked_for:
                return asked_for
            hold = await self._write(records.wait)
            if hold is LeaseStatus.KEPT:
                waiting = events.State(self.claim.row_id, Turn.State.WAITING)
                await events.publish_event(self.claim.conversation_id, waiting)
                self._tell_news(self._turn, Turn.State.WAITING)
                self._end()
            elif hold:
                self._end_by(hold)
        return []

    def _prepare_next(
        self, claim: TurnClaim
    ) -> tuple[SettledCalls, NextRequest | None] | None:
        """Return the open calls, and the next request if there are none.

        This is one step: before each step, the first words of other users' replies have
        to wait.
        """
        settled = records.settle(claim, max_calls())
        if settled is None:
            return None
        # If the rest has to be tried again, these have been answered already.
        self._answered += settled.answered
        if settled.still_open:
            return settled, None
        is_used_up = settled.rounds >= max_rounds() or settled.calls >= max_calls()
        is_last = is_used_up or not settled.has_room
        self._update_offer()
        tools = replace(self._offer, choice="none") if is_last else self._offer
        request = attempt.begin_attempt(claim, tools=tools)
        return settled, NextRequest(request, is_last)

    def _update_offer(self) -> None:
        """Offer what was found meanwhile, and not what was switched off."""
        names = registry.list_offered(self._turn.conversation)
        if names != self._offered:
            tools = {each.name: each for each in self._site_tools}
            self._offer = registry.offer_tools(
                tools[name] for name in names if name in tools
            )
            self._offered = names

    async def _ask(self, following: NextRequest) -> list[ToolCall]:
        """Send a request. The calls of its reply; none where it was the last one."""
        request, is_last = following
        ended = await attempt.answer_turn(self.claim, request, self._make_room)
        if ended is None:
            self._end()
            return []
        self.claim, result = ended
        is_cut = result.state != Turn.State.DONE
        wanted = call_requests.read(result.calls, max_calls(), is_cut=is_cut)
        if not wanted:
            self._end(result)
            return []
        keep = records.keep_cut_off if is_cut else records.ask
        try:
            stored = None if is_last else await self._write(keep, result, wanted)
        except NoRoomError:
            is_last = True
        if is_last:
            self._end(result if is_cut else over_limit(result))
            return []
        calls = await self._take(stored)
        if is_cut:
            # Its words are stored, and its request is billed.
            self._end(replace(result, text="", reasoning="", calls=()))
            return []
        metrics.note_reply(result)
        return calls

    async def _take(
        self, stored: tuple[TurnClaim, list[ToolCall]] | None
    ) -> list[ToolCall]:
        if stored is None:
            self._end()
            return []
        self.claim, calls = stored
        await self._tell(calls)
        return calls

    async def _run_in_its_place(self, call: ToolCall) -> None:
        async with self._places:
            if not self._over.is_set():
                await self._run_call(call.pk)

    async def _run_call(self, pk: int) -> None:
        begun = await self._write(records.begin, pk)
        if isinstance(begun, LeaseStatus):
            self._end_by(begun)
            return
        await self._tell([begun])
        if begun.state != State.RUNNING:
            return
        answer = await self._answer(begun)
        if self._over.is_set() and self._result is None:
            return
        if settings.TOOL_RESULTS == "summarise" and not self._over.is_set():
            answer = await self._summarise(begun, answer)
        call = await self._write(records.finish, pk, answer)
        if call is None:
            self._end()
        else:
            await self._tell([call])

    async def _answer(self, call: ToolCall) -> CallAnswer | PendingResult:
        if call.error:
            return CallAnswer(State.FAILED, BAD_ARGUMENTS, call.error)
        if registry.is_tool_off(call.name):
            return CallAnswer(State.FAILED, SWITCHED_OFF, "tool_off")
        tools = {each.name: each for each in self._site_tools}
        if call.name not in tools:
            names = ", ".join(tools) or "none"
            words = f"No result: there is no tool named {call.name!r}. Tools: {names}."
            return CallAnswer(State.FAILED, words, "unknown_tool")
        limits = tools[call.name].time_limits
        async with Reports(self._teller(call), *limits) as reports:
            task = asyncio.ensure_future(self._execute(call))
            await self._wait_for(task, reports.count_seconds_left)
        if not task.done() or task.cancelled():
            return self._broken_off(call, reports.limit)
        return read_outcome(task)

    async def _execute(self, call: ToolCall) -> Any:
        """Return the tool's result, or the error of the arguments.

        A Command has no words: return None.
        """
        context = call_context.of(call)
        user_id.set(context.user_id)
        conversation_id.set(context.conversation_id)
        callable_tools.set(self._site_tools)
        asked = {"id": str(call.pk), "name": call.name, "args": call.arguments}
        # Without metadata LangChain passes on what a ToolRuntime warns of.
        found = await self._node.ainvoke(
            [{**asked, "type": "tool_call"}],
            {"metadata": {}},
            runtime=Runtime(context=context),
        )
        return found["messages"][0] if isinstance(found, dict) else None

    def _teller(self, call: ToolCall) -> Callable[[CallProgress], Awaitable[Any]]:
        async def tell(found: CallProgress) -> None:
            told = replace(ToolEvent.from_call(call), progress=asdict(found))
            await events.publish_event(self.claim.conversation_id, told)

        return tell

    async def _summarise(
        self, call: ToolCall, answer: CallAnswer | PendingResult
    ) -> CallAnswer | PendingResult:
        """Return the answer, with a summary if its result is too long."""
        if isinstance(answer, PendingResult) or answer.state != State.DONE:
            return answer
        task = asyncio.ensure_future(summaries.make(call.pk, answer.content))
        await self._wait_for(task)
        is_made = task.done() and not task.cancelled()
        return replace(answer, summary=task.result()) if is_made else answer

    async def _wait_for(
        self, task: asyncio.Future[Any], seconds_left: Callable[[], float] | None = None
    ) -> None:
        """Wait until the task is done, has no time left, or the attempt is over.

        Then the task is cancelled, and abandoned if it does not end.
        """
        over = asyncio.ensure_future(self._over.wait())
        self._running.add(task)
        try:
            done, left = set(), None
            while not done and (left is None or left > 0):
                left = seconds_left() if seconds_left else None
                done, _ = await asyncio.wait(
                    {task, over}, timeout=left, return_when=asyncio.FIRST_COMPLETED
                )
        finally:
            over.cancel()
            self._running.discard(task)
            if not task.done():
                _left_alone.add(task)
                task.add_done_callback(_forget)
                task.cancel()

    def _broken_off(self, call: ToolCall, seconds: float) -> CallAnswer:
        if self._over.is_set():
            return answers.broken_off(call.name)
        words = TOO_SLOW.format(seconds=seconds)
        tool = registry.known().get(call.name)
        if tool and tool.read_only:
            return CallAnswer(State.FAILED, words, "tool_timeout")
        return CallAnswer(State.UNKNOWN, f"{words} {PERHAPS}", "tool_timeout")

    async def _guard(self, stop: asyncio.Event) -> None:
        """Keep the lease while tools run, and detect a stop.

        A reply that is streamed does both itself, and so does each step of the
        database.
        """
        stopped = asyncio.ensure_future(stop.wait())
        try:
            while not self._over.is_set():
                await asyncio.wait({stopped}, timeout=checkpoints.CHECKPOINT_SECONDS)
                if self._running:
                    is_stopped = stopped.done()
                    hold = LeaseStatus.CANCELLED if is_stopped else await self._renew()
                    self._end_by(hold)
                elif stopped.done():
                    return
        finally:
            stopped.cancel()

    async def _renew(self) -> LeaseStatus:
        started = monotonic()
        try:
            hold = await checkpoints.save_checkpoint(self.claim, "")
        except TRANSIENT_DB_ERRORS as error:
            logger.warning(
                "lease not renewed turn=%s: %s", self.claim.row_id, name_of(error)
            )
            is_over = monotonic() >= self.claim.lease_end
            return LeaseStatus.LOST if is_over else LeaseStatus.KEPT
        self.claim = replace(self.claim, renewed_at=started)
        return hold

    def _end_by(self, hold: LeaseStatus) -> None:
        if hold is LeaseStatus.CANCELLED:
            self._end(TurnResult(Turn.State.STOPPED, ""))
        elif hold is LeaseStatus.LOST:
            self._end()

    def _end(self, result: TurnResult | None = None) -> None:
        if not self._over.is_set():
            self._result = result
            self._over.set()

    async def _write(self, step: Callable[..., Any], *arguments: Any) -> Any:
        """Run a step of the database under the claim, retried while the claim holds."""
        return await retry(step, self.claim, *arguments, until=self.claim.lease_end)

    async def _tell(self, calls: Iterable[ToolCall]) -> None:
        for call in calls:
            told = ToolEvent.from_call(call)
            await events.publish_event(self.claim.conversation_id, told)


def max_rounds() -> int:
    return min(settings.TOOL_ROUNDS, MAX_ROUNDS)


def max_calls() -> int:
    return min(settings.TOOL_CALLS, MAX_CALLS)


def over_limit(result: TurnResult) -> TurnResult:
    """Return a reply whose calls are over the limit: its text is all there is."""
    if is_blank(result.text):
        return replace(result, state=Turn.State.FAILED, error="tool_limit")
    return result


def read_outcome(task: asyncio.Future[Any]) -> CallAnswer | PendingResult:
    """Return the result of a tool that has ended.

    The words of an error go to the model only if the tool meant them to: others can
    contain a key.
    """
    error = task.exception()
    if isinstance(error, AnswerLostError):
        return CallAnswer(State.UNKNOWN, f"No result: {error}", "tool_error")
    if isinstance(error, ToolException):
        return CallAnswer(State.FAILED, f"No result: {error}", "tool_error")
    if error:
        logger.warning("a tool failed: %s", type(error).__name__)
        words = f"No result: the tool failed ({type(error).__name__})."
        return CallAnswer(State.FAILED, words, "tool_error")
    found = task.result()
    if isinstance(found, PendingResult):
        return found
    if not isinstance(found, ToolMessage):
        return CallAnswer(State.FAILED, "No result: the tool gave none.", "tool_error")
    if found.status != "error":
        return CallAnswer(State.DONE, found)
    is_misfit = str(found.content).startswith(MISFIT)
    code = "bad_arguments" if is_misfit else "tool_error"
    return CallAnswer(State.FAILED, found, code)


def _forget(task: asyncio.Future[Any]) -> None:
    _left_alone.discard(task)
    if not task.cancelled():
        task.exception()
