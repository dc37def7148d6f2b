"""The compaction job: plan, summarise, commit. It runs beside the replies, never before
one.

The summariser works without a transaction; its result is committed only if nothing
that the model sees has changed since the plan was made. A failure changes nothing
but the counters that make the next try wait.
"""

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from time import monotonic
from typing import TypeVar

from channels.db import database_sync_to_async
from django.db.models.functions import Now
from langchain_core.messages import AIMessage, BaseMessage
from pydantic import BaseModel

from memory.database import TRANSIENT_DB_ERRORS, name_of, retry
from memory.engine.compaction import find_important
from memory.engine.exceptions import SummaryError
from memory.engine.policy import CHUNK_TOKENS
from memory.engine.summaries import summarizer
from memory.models import Conversation

from . import commit, lease, preparation
from .commit import Charge, InvokeError, RefusedError
from .lease import MAX_FAILURES, due, is_held, mark_due
from .preparation import Job, OpenFrom

__all__ = [
    "MAX_FAILURES",
    "InvokeError",
    "OpenFrom",
    "Outcome",
    "RefusedError",
    "Summariser",
    "due",
    "compact",
    "is_held",
    "mark_due",
    "may_compact",
    "reset",
]

logger = logging.getLogger(__name__)

T = TypeVar("T")
# How long a result that was paid for waits for the database to take it.
INSIST_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a compaction did: "nothing", "busy", "folded", "discarded", "failed" or
    "refused"."""

    state: str
    versions: tuple[int, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class Summariser:
    """A model that compacts: its name, how to send it one request, how much at once.

    `invoke(messages, schema=...)` raises InvokeError when no answer came. The schema
    is what the reply should follow, if the model can be held to one. `door()` is
    entered before each request and left when it is recorded: it waits for a place, or
    raises RefusedError.
    """

    model: str
    invoke: Callable[..., Awaitable[AIMessage]]
    chunk_tokens: int = CHUNK_TOKENS
    charge: Charge = lambda call, text: None
    door: Callable[[], AbstractAsyncContextManager[None]] = nullcontext


async def compact(
    conversation_id: int,
    summariser: Summariser,
    *,
    open_from: OpenFrom = lambda _: None,
    context_window: int | None = None,
    limit: int | None = None,
    force: bool = False,
) -> Outcome:
    """Compact until the policy asks for no more; at most one process compacts at a
    time.

    More than fits into a request is compacted whatever the policy says: into `limit`
    tokens, or what the model's window leaves beside a reply.

    `force` compacts even below the trigger, while backing off and after the job gave
    up.
    """
    owner = uuid.uuid4().hex
    if not await database_sync_to_async(lease.claim)(conversation_id, owner, force):
        return Outcome("busy")
    renewer = asyncio.create_task(_keep_lease(conversation_id, owner))

    def prepare(again: bool) -> Job | None:
        return preparation.prepare(
            conversation_id,
            owner,
            open_from,
            context_window,
            limit,
            force and not again,
        )

    try:
        return await _take_steps(conversation_id, owner, summariser, prepare)
    finally:
        renewer.cancel()
        await _insist(lease.release, conversation_id, owner)


async def _take_steps(
    conversation_id: int,
    owner: str,
    summariser: Summariser,
    prepare: Callable[[bool], Job | None],
) -> Outcome:
    done: list[int] = []
    job = None
    try:
        while job := await database_sync_to_async(prepare)(bool(done)):
            version = await _perform(job, summariser)
            if version is None:
                return Outcome("discarded", tuple(done))
            done.append(version)
            job = None
        return Outcome("folded" if done else "nothing", tuple(done))
    except RefusedError as refused:
        await database_sync_to_async(lease.postpone)(
            conversation_id, refused.retry_after
        )
        return Outcome("refused", tuple(done), refused.code)
    except Conversation.DoesNotExist:
        return Outcome("discarded", tuple(done))
    except Exception as error:
        if not isinstance(error, (SummaryError, InvokeError)):
            logger.exception("compaction crashed conversation=%s", conversation_id)
        # The edge of the job: whatever was raised is counted, or it would be raised,
        # and the summariser paid, again and again.
        await _fail(conversation_id, owner, summariser, error, job)
        return Outcome("failed", tuple(done), commit.error_name(error))


async def _fail(
    conversation_id: int,
    owner: str,
    summariser: Summariser,
    error: Exception,
    job: Job | None,
) -> None:
    logger.warning(
        "compaction failed conversation=%s range=%s error=%s",
        conversation_id,
        f"{job.step.first_seq}-{job.step.last_seq}" if job else "-",
        commit.error_name(error),
    )
    await _insist(
        commit.record_failure, conversation_id, owner, summariser.model, error, job
    )


async def _insist(work: Callable[..., T], *args: object) -> T:
    """What was paid for is not lost because the database is away for a moment."""
    return await retry(work, *args, until=monotonic() + INSIST_SECONDS)


async def _keep_lease(conversation_id: int, owner: str) -> None:
    while True:
        await asyncio.sleep(lease.LEASE.total_seconds() / 4)
        try:
            await database_sync_to_async(lease.renew)(conversation_id, owner)
        except TRANSIENT_DB_ERRORS as error:
            # As long as no other process began the same compaction, this one goes on.
            logger.warning(
                "compaction lease not renewed conversation=%s: %s",
                conversation_id,
                name_of(error),
            )


def may_compact(conversation: Conversation) -> bool:
    """Whether the compaction job still tries on its own (it gives up after 3
    failures)."""
    return conversation.compaction_failures < MAX_FAILURES


def reset(conversation: Conversation) -> None:
    """Let the compaction job try again at once, as a person asked for."""
    rows = Conversation.objects.filter(pk=conversation.pk)
    rows.update(
        compaction_failures=0, compaction_retry_at=None, compaction_due_at=Now()
    )


async def _perform(job: Job, summariser: Summariser) -> int | None:
    """Summarise and commit one step. None = the ground changed, result discarded."""
    result = await write(job, summariser)
    # In a thread of its own: patterns of a person can take long.
    important = await asyncio.to_thread(find_important, job.policy, job.step)
    return await _insist(commit.commit, job, summariser.model, result, important)


Around = Callable[[summarizer.StructuredInvoke], summarizer.StructuredInvoke]


async def write(
    job: Job, summariser: Summariser, around: Around | None = None
) -> summarizer.SummaryText:
    """The summary of one step; every request for it is recorded.

    `around` may answer a request itself, which is then neither sent nor recorded.
    """

    async def invoke(
        messages: list[BaseMessage], *, schema: type[BaseModel] | None = None
    ) -> AIMessage:
        return await _request(job, summariser, messages, schema)

    invoke.takes_schema = True
    return await summarizer.write(
        around(invoke) if around else invoke,
        job.step,
        job.messages,
        policy=job.policy,
        count_tokens=job.count_tokens,
        chunk_tokens=summariser.chunk_tokens,
    )


async def _request(
    job: Job,
    summariser: Summariser,
    messages: list[BaseMessage],
    schema: type[BaseModel] | None,
) -> AIMessage:
    """Send one request and record it, answered or not. One that was refused at the
    door was never sent."""
    async with summariser.door():
        started = monotonic()
        # What stays if the process ends while the model writes.
        reply, error = None, InvokeError("cancelled")
        try:
            reply = await summariser.invoke(messages, schema=schema)
            error = None
        except InvokeError as failure:
            error = failure
            raise
        finally:
            ms = int((monotonic() - started) * 1000)
            await _insist(
                commit.record_call,
                job,
                summariser.model,
                messages,
                reply,
                error,
                ms,
                summariser.charge,
            )
    return reply
