"""Drives turns, and the compactions that follow them, in detached tasks of the process.

The database decides who runs what (turns/); this module only does the work. A task
never belongs to a socket, so a closed tab ends nothing.
"""

import asyncio
import contextvars
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from operator import attrgetter
from time import monotonic
from types import ModuleType
from typing import Any, TypeVar

from channels.db import database_sync_to_async
from django.conf import settings
from langchain_core.messages import AIMessage, BaseMessage
from pydantic import BaseModel

from chatsite import metrics, plugins
from chatsite.database import keep_connection
from chatsite.fair_queue import work_owner
from chatsite.llm import providers
from chatsite.llm.errors import LLMError
from chatsite.protocol import events
from memory import library
from memory.compaction import compactor, lease, preparation
from memory.database import TRANSIENT_DB_ERRORS, name_of, retry
from memory.engine.policy import CHUNK_TOKENS
from memory.leases import Claim, LostError

from . import attempt, backlog, lifecycle, limits, requests, spending, titles
from .models import Turn

logger = logging.getLogger(__name__)

T = TypeVar("T")

# A complete reply waits this long for the database to take it.
FINISH_SECONDS = 60.0
# A process that was asked to end gives its tasks and its database this long.
TASKS_SECONDS = 2.0
# Compacts that a sweep starts here before others have ended.
MAX_COMPACTING = 16
RELEASE_SECONDS = 3.0
# How often a compaction that has to wait for another one looks whether it has ended.
ROOM_SECONDS = 0.5


# Strong references: the event loop keeps only weak ones to its tasks.
_tasks: set[asyncio.Task[None]] = set()
_held: dict[int, lifecycle.TurnClaim] = {}
# Conversations that are compacted here, or wait for a place to spend.
_compaction: set[int] = set()
_closing = asyncio.Event()
_tool_loop: ModuleType | None = None


def start_turns(conversation_id: int, claim: lifecycle.TurnClaim | None = None) -> None:
    """Work off the conversation's turns in a task of its own.

    It begins with the turn of `claim`, where one was claimed already.
    """
    spawn_task(_drive_turns(conversation_id, claim))


def may_claim() -> bool:
    """Return whether a turn that is claimed now will be run; not at shutdown."""
    return not _closing.is_set()


def start_compaction(conversation_id: int) -> None:
    """Compact in a task of its own, unless one waits here for the same already."""
    if conversation_id in _compaction:
        return
    task = spawn_task(_compact_if_due(conversation_id))
    if task:
        _compaction.add(conversation_id)
        task.add_done_callback(lambda _: _compaction.discard(conversation_id))


async def compact_soon(conversation_id: int) -> None:
    """Begin at once where tasks outlive the request; elsewhere a sweep begins."""
    if is_sweeping():
        start_compaction(conversation_id)


def make_room(
    conversation_id: int, limit: int | None, *, rounds: bool = False
) -> asyncio.Task[Any] | None:
    """Compact the messages that the next request would leave out.

    `rounds`: also the older rounds of tools of the newest turn.
    """
    return spawn_task(_make_room(conversation_id, limit, rounds))


async def _make_room(conversation_id: int, limit: int | None, rounds: bool) -> None:
    is_held = database_sync_to_async(lease.is_held)
    compact = partial(_compact_if_due, conversation_id, limit=limit, rounds=rounds)
    while await compact() == "busy":
        # Another process compacts it just now, or the last failure is not long ago.
        if not await is_held(conversation_id):
            return
        await asyncio.sleep(ROOM_SECONDS)


def spawn_task(
    work: Coroutine[Any, Any, Any], name: str = ""
) -> asyncio.Task[Any] | None:
    """Do the work in a detached task that ends with the process.

    None: at shutdown, or while this process has a task of that name.
    """
    is_running = name and any(task.get_name() == name for task in _tasks)
    if _closing.is_set() or is_running:
        work.close()
        return None
    # Nearly empty: inherited whole from an HTTP request, a task would use that
    # request's thread for the database, which is gone when the response is out.
    context = contextvars.Context()
    context.run(work_owner.set, work_owner.get())
    task = asyncio.get_running_loop().create_task(
        work, name=name or None, context=context
    )
    _tasks.add(task)
    task.add_done_callback(_forget_task)
    return task


def _forget_task(task: asyncio.Task[None]) -> None:
    _tasks.discard(task)
    error = None if task.cancelled() else task.exception()
    if isinstance(error, TRANSIENT_DB_ERRORS):
        logger.warning("task given up: %s", name_of(error))
    elif error:
        logger.error("task crashed", exc_info=error)


async def _drive_turns(
    conversation_id: int, claim: lifecycle.TurnClaim | None = None
) -> None:
    claim = claim or await _claim_next(conversation_id)
    while claim:
        _held[claim.row_id] = claim
        try:
            ended = await _work_off(claim)
        finally:
            _held.pop(claim.row_id, None)
        turn, waiting = ended or (None, await _find_next_waiting(claim))
        if turn is None or turn.is_compaction_due:
            start_compaction(conversation_id)
        if turn and titles.may_be_due(turn.conversation):
            spawn_task(titles.name_conversation(conversation_id))
        # The owner's other conversations have the place that became free.
        for waiting_id in {*(waiting or ())} - {conversation_id}:
            start_turns(waiting_id)
        has_next = waiting is None or conversation_id in waiting
        claim = await _claim_next(conversation_id) if has_next else None


async def _find_next_waiting(claim: lifecycle.TurnClaim) -> list[int] | None:
    """limits.next_waiting() after a turn that another process has, or that waits."""
    try:
        find = database_sync_to_async(limits.next_waiting)
        return await find(claim.conversation_id)
    except TRANSIENT_DB_ERRORS:
        return []  # the sweep finds them


async def _claim_next(conversation_id: int) -> lifecycle.TurnClaim | None:
    try:
        take = database_sync_to_async(lifecycle.next_claim)
        ended, claim = await take(conversation_id)
    except TRANSIENT_DB_ERRORS as error:
        logger.warning("no turn claimed: %s", name_of(error))
        return None
    for turn in ended:
        await _tell_end(turn)
    return claim


async def _work_off(
    claim: lifecycle.TurnClaim,
) -> tuple[Turn | None, list[int] | None] | None:
    """Run the turn to its end; None: it has not ended here.

    Returns the turn as it ended, and the conversations that may go on now.
    """
    crashed = claim, lifecycle.TurnResult(Turn.State.FAILED, "", error="internal")
    found = await work_to_end("turn", claim, run_attempt(claim), _finish_turn, crashed)
    if found is None:
        return None
    (_, result), (turn, waiting) = found
    metrics.note_reply(result)
    if turn:
        await _tell_end(turn)
    return turn, waiting


def _finish_turn(
    claim: lifecycle.TurnClaim, result: lifecycle.TurnResult
) -> tuple[Turn | None, list[int] | None]:
    """End the turn, and find what may follow it: one visit to the database thread."""
    turn = lifecycle.finish(claim, result)
    return turn, limits.next_waiting(claim.conversation_id)


async def work_to_end(
    name: str,
    claim: Claim,
    work: Awaitable[tuple[Any, ...] | None],
    finish: Callable[..., T],
    crashed: tuple[Any, ...],
) -> tuple[tuple[Any, ...], T] | None:
    """Do claimed work and write its end; return both.

    None: the row was lost, or is left to the process that takes it when its lease has
    ended. `finish` is tried on after the lease: its fence holds until another has the
    row.
    """
    try:
        try:
            ended = await work
        except (LostError, *TRANSIENT_DB_ERRORS):
            raise
        except Exception:
            # The edge of the work: whatever happened, it must not stay without an end.
            logger.exception("%s crashed %s=%s", name, name, claim.row_id)
            ended = crashed
        if ended is None:
            raise LostError
        return ended, await retry(finish, *ended, until=monotonic() + FINISH_SECONDS)
    except LostError:
        logger.info("%s lost %s=%s", name, name, claim.row_id)
    except TRANSIENT_DB_ERRORS as error:
        # It is taken over when its lease has ended, here or elsewhere.
        logger.warning("%s left %s=%s: %s", name, name, claim.row_id, name_of(error))
    return None


async def run_attempt(
    claim: lifecycle.TurnClaim,
) -> tuple[lifecycle.TurnClaim, lifecycle.TurnResult] | None:
    """Run an attempt; return the claim of its last request and the result.

    None: the turn was lost, or is left to wait for its user's consent. Raises an error
    of the database when that stays away for longer than the lease.
    """
    prepared = await retry(attempt.begin_attempt, claim, until=claim.lease_end)
    if isinstance(prepared, Turn):
        loop = _tool_loop or await asyncio.to_thread(_load_tool_loop)
        return await loop.run(claim, prepared, make_room, tell_news)
    return await attempt.answer_turn(claim, prepared, make_room)


def _load_tool_loop() -> ModuleType:
    """Import the tool loop when first needed, and return it.

    LangGraph takes a fifth of a second to import, which most commands can spare.
    """
    global _tool_loop
    from chatsite.features.tools.tool_loop import loop

    _tool_loop = loop
    return loop


async def _tell_end(turn: Turn) -> None:
    logger.info(
        "turn ended turn=%s conversation=%s state=%s error=%s",
        turn.pk,
        turn.conversation_id,
        turn.state,
        turn.error or "-",
    )
    metrics.TURNS_ENDED.labels(turn.state).inc()
    for event in events.make_end_events(turn):
        await events.publish_event(turn.conversation_id, event)
    tell_news(turn, turn.state)


def tell_news(turn: Turn, state: str) -> None:
    """Notify other apps that the turn has ended, or waits for its user's answer.

    The user may be elsewhere.
    """
    if plugins.turn_ended.has_listeners(Turn):
        spawn_task(plugins.turn_ended.asend_robust(Turn, turn=turn, state=state))


async def _compact_if_due(
    conversation_id: int, *, limit: int | None = None, rounds: bool = False
) -> str:
    """Compact what the policy asks for, and notify the pages when the view has changed.

    Returns how it ended.
    """
    found = await database_sync_to_async(_look_for_compaction)(
        conversation_id, limit is not None
    )
    if found is None:
        return "nothing"
    model, payer = found
    work_owner.set(payer)
    name = providers.summary_model(model)
    outcome = await compactor.compact_conversation(
        conversation_id,
        announce_first_request(make_summariser(name, payer=payer), conversation_id),
        open_from=lifecycle.open_from,
        context_window=providers.context_window(model),
        limit=limit,
        rounds=rounds,
    )
    if outcome.state not in ("nothing", "busy"):
        metrics.COMPACTIONS.labels(outcome.state).inc()
        await events.publish_event(conversation_id, events.Memory.from_outcome(outcome))
    return outcome.state


def _look_for_compaction(conversation_id: int, at_once: bool) -> tuple[str, int] | None:
    """Return the conversation's model, and the user who pays.

    None when there is nothing to compact, or the conversation was deleted meanwhile.
    """
    conversation = lifecycle.with_open_from(conversation_id)
    if conversation is None:
        return None
    model = requests.model_of(conversation)
    room, open_from = providers.context_window(model), attrgetter("open_from")
    if at_once or preparation.is_due(conversation, open_from, room):
        return model, conversation.owner_id
    return None


def announce_first_request(
    summariser: compactor.Summariser, conversation_id: int
) -> compactor.Summariser:
    """Return the summariser with a notice to the pages before its first request."""
    is_announced = False

    @asynccontextmanager
    async def rate_limit() -> AsyncIterator[None]:
        nonlocal is_announced
        if not is_announced:
            is_announced = True
            await events.publish_event(
                conversation_id, events.JobState("fold", "running")
            )
        async with summariser.rate_limit():
            yield

    return replace(summariser, rate_limit=rate_limit)


def make_summariser(name: str, *, payer: int) -> compactor.Summariser:
    """Return the summariser with the model of this name; the user `payer` pays."""

    async def invoke(
        messages: list[BaseMessage],
        *,
        schema: type[BaseModel] | None = None,
        cache_key: str = "",
    ) -> AIMessage:
        try:
            reply = await requests.complete_request(
                name,
                messages,
                schema=schema,
                max_tokens=settings.SUMMARY_MAX_TOKENS,
                cache_key=cache_key,
            )
        except LLMError as error:
            metrics.note_request("summary", error.code)
            shape = requests.shape_of(name, error.dialect)
            raise compactor.InvokeError(error.code, shape) from None
        metrics.note_request("summary")
        return reply

    # Half of a small window is left for the summary so far, and for what comes out.
    chunk_tokens = min(CHUNK_TOKENS, providers.context_window(name) // 2)
    place = partial(spending.hold_place, payer, name)
    return compactor.Summariser(name, invoke, chunk_tokens, limits.charge_call, place)


async def _start_due_turns() -> None:
    # What is driven here goes on with the next turn by itself.
    busy = {claim.conversation_id for claim in _held.values()}
    for conversation_id in set(await database_sync_to_async(lifecycle.due)()) - busy:
        start_turns(conversation_id)


async def _start_due_compactions() -> None:
    """Start the compactions that are due, up to MAX_COMPACTING in this process.

    More for the same users would only wait, with leases to renew. The database has the
    rest.
    """
    room = MAX_COMPACTING - len(_compaction)
    if room > 0:
        due = database_sync_to_async(lease.due_compactions)(room)
    else:
        due = database_sync_to_async(lease.due_for_others)(list(_compaction))
    for conversation_id in await due:
        start_compaction(conversation_id)


_purge = database_sync_to_async(library.purge_deleted)
jobs = [
    plugins.BackgroundJob(_start_due_turns, lifecycle.release, lifecycle.waiting),
    plugins.BackgroundJob(_start_due_compactions, due=lease.waiting_compactions),
    plugins.BackgroundJob(_purge, due=library.find_erasable),
    plugins.BackgroundJob(_purge, due=library.find_expired),
]


def _all_jobs() -> list[plugins.BackgroundJob]:
    return [*jobs, *plugins.jobs]


def _make_backlog() -> backlog.Backlog:
    return backlog.Backlog([job.due for job in _all_jobs() if job.due])


async def sweep_due_work(waiting: backlog.Backlog | None = None) -> None:
    """Start all work that is due and that no process does."""
    found = await database_sync_to_async((waiting or _make_backlog()).find_due)()
    for job in _all_jobs():
        if job.due is None or job.due in found:
            await job.sweep()


async def _sweep_forever() -> None:
    # In the thread that works for all turns and sockets.
    await database_sync_to_async(keep_connection)()
    waiting = _make_backlog()
    while True:
        try:
            await sweep_due_work(waiting)
        except TRANSIENT_DB_ERRORS as error:
            logger.warning("sweep failed: %s", name_of(error))
        except Exception:
            # Nothing may end the sweeping as long as the process lives.
            logger.exception("sweep failed")
        await asyncio.sleep(settings.TURN_SWEEP_SECONDS)


_sweepers: dict[asyncio.AbstractEventLoop, asyncio.Task[None]] = {}


def ensure_sweeping() -> None:
    """Start this process's sweeper, once; call it from inside the event loop."""
    loop = asyncio.get_running_loop()
    if loop not in _sweepers:
        _sweepers[loop] = loop.create_task(
            _sweep_forever(), context=contextvars.Context()
        )


def is_sweeping() -> bool:
    """Return whether tasks of this event loop live longer than one request."""
    return asyncio.get_running_loop() in _sweepers


async def hand_back() -> None:
    """Release the turns that run here, so that another process takes over at once.

    Whatever hangs is left behind: its lease ends soon enough.
    """
    _closing.set()
    running = [*_tasks, *_sweepers.values()]
    for task in running:
        task.cancel()
    if running:
        await asyncio.wait(running, timeout=TASKS_SECONDS)
    try:
        async with asyncio.timeout(RELEASE_SECONDS):
            for job in _all_jobs():
                await database_sync_to_async(job.release)()
    except (TimeoutError, *TRANSIENT_DB_ERRORS) as error:
        logger.warning("turns not handed back: %s", name_of(error))
