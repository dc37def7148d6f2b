"""The compaction job: plan, summarise, commit.

It runs beside the replies, never before one. The summariser works without a
transaction; its result is committed only if nothing that the model sees has changed
since the plan was made. A failure changes nothing but the counters that delay the next
attempt.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TypeVar

from channels.db import database_sync_to_async
from langchain_core.messages import AIMessage, BaseMessage
from pydantic import BaseModel

from memory.database import retry
from memory.engine.compaction import find_important
from memory.engine.exceptions import SummaryError
from memory.engine.policy import CHUNK_TOKENS
from memory.engine.summaries import summarizer
from memory.leases import Claim, work_under_lease
from memory.models import Conversation

from . import commit, lease, preparation
from .commit import Charge, InvokeError, RefusedError
from .preparation import CompactionJob, OpenFrom

logger = logging.getLogger(__name__)

T = TypeVar("T")
# How long a paid result waits for the database.
RETRY_SECONDS = 60.0
Around = Callable[[summarizer.StructuredInvoke], summarizer.StructuredInvoke]


@dataclass(frozen=True, slots=True)
class CompactionOutcome:
    """The result of a compaction.

    `state` is "nothing", "busy", "folded", "discarded", "failed" or "refused".
    """

    state: str
    versions: tuple[int, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class Summariser:
    """A model that compacts: its name, its request function and chunk size.

    `invoke(messages, schema=...)` raises InvokeError when no answer came. The schema is
    what the reply should follow, if the model supports one. `rate_limit()` is entered
    before each request and left when it is recorded: it waits for a slot, or raises
    RefusedError.
    """

    model: str
    invoke: Callable[..., Awaitable[AIMessage]]
    chunk_tokens: int = CHUNK_TOKENS
    charge: Charge = lambda call, text: None
    rate_limit: Callable[[], AbstractAsyncContextManager[None]] = nullcontext


async def compact_conversation(
    conversation_id: int,
    summariser: Summariser,
    *,
    open_from: OpenFrom = lambda _: None,
    context_window: int | None = None,
    limit: int | None = None,
    force: bool = False,
    rounds: bool = False,
) -> CompactionOutcome:
    """Compact until the policy asks for no more.

    At most one process compacts a conversation at a time.

    More than fits into a request is compacted whatever the policy says: into `limit`
    tokens, or what the model's window leaves beside a reply.

    `force` compacts even below the trigger, while backing off, and after the job gave
    up.

    `rounds`: older rounds of tools in the newest turn can be compacted too. The caller
    sends the turn's question before the rest.
    """
    claim_row = database_sync_to_async(lease.claim_compaction)
    claim = await claim_row(conversation_id, force=force)
    if claim is None:
        return CompactionOutcome("busy")
    asked = (claim, open_from, context_window, limit)
    prepare = partial(preparation.prepare_job, *asked, rounds=rounds)
    # A job that could not renew goes on until another process claims the conversation.
    renew = partial(database_sync_to_async(lease.renew_compaction), claim)
    work = _compact(claim, summariser, database_sync_to_async(prepare), force)
    try:
        return await work_under_lease(work, renew, lease.LEASE.total_seconds() / 4)
    finally:
        await _retry_write(lease.release_compaction, claim)


async def _compact(
    claim: Claim,
    summariser: Summariser,
    prepare: Callable[[bool], Awaitable[CompactionJob | None]],
    force: bool,
) -> CompactionOutcome:
    done: list[int] = []
    job = None
    try:
        while job := await prepare(force and not done):
            result = await write_step_summary(job, summariser)
            # In a thread, because a user's patterns can take long.
            important = await asyncio.to_thread(find_important, job.policy, job.step)
            made = (job, summariser.model, result, important)
            version = await _retry_write(commit.commit_summary, claim, *made)
            if version is None:
                return CompactionOutcome("discarded", tuple(done))
            done.append(version)
            job = None
        return CompactionOutcome("folded" if done else "nothing", tuple(done))
    except RefusedError as refused:
        postpone = database_sync_to_async(lease.postpone_compaction)
        await postpone(claim.row_id, refused.retry_after)
        return CompactionOutcome("refused", tuple(done), refused.code)
    except Conversation.DoesNotExist:
        return CompactionOutcome("discarded", tuple(done))
    except Exception as error:  # noqa: BLE001 - _log_failure() logs it
        _log_failure(claim.row_id, error, job)
        # Every error is counted. Without that, the job would fail, and pay the
        # summariser, again and again.
        await _retry_write(commit.record_failure, claim, summariser.model, error, job)
        return CompactionOutcome("failed", tuple(done), commit.error_name(error))


def _log_failure(
    conversation_id: int, error: Exception, job: CompactionJob | None
) -> None:
    if not isinstance(error, (SummaryError, InvokeError)):
        logger.error(
            "compaction crashed conversation=%s", conversation_id, exc_info=error
        )
    logger.warning(
        "compaction failed conversation=%s range=%s error=%s",
        conversation_id,
        f"{job.step.first_seq}-{job.step.last_seq}" if job else "-",
        commit.error_name(error),
    )


async def write_step_summary(
    job: CompactionJob, summariser: Summariser, around: Around | None = None
) -> summarizer.SummaryText:
    """Return the summary of one step.

    Every request for it is recorded, answered or not. If the same model has the
    conversation in its provider's cache, the summary is requested at the end of its
    last request; then `summariser.invoke` also gets the conversation's `cache_key`.

    `around` may answer a request itself, which is then neither sent nor recorded.
    """

    prefix = job.prefix if job.prefix and job.prefix.model == summariser.model else None

    async def invoke(
        messages: list[BaseMessage], *, schema: type[BaseModel] | None = None
    ) -> AIMessage:
        key = {"cache_key": str(job.conversation.uuid)} if prefix else {}
        async with summariser.rate_limit():
            started = monotonic()
            # This stays if the task is cancelled while the model writes.
            reply, error = None, InvokeError("cancelled")
            try:
                reply = await summariser.invoke(messages, schema=schema, **key)
                error = None
            except InvokeError as failure:
                error = failure
                raise
            finally:
                ms = int((monotonic() - started) * 1000)
                recorded = (messages, reply, error, ms, summariser.charge)
                await _retry_write(commit.record_call, job, summariser.model, *recorded)
        return reply

    invoke.takes_schema = True
    return await summarizer.write_summary(
        around(invoke) if around else invoke,
        job.step,
        job.messages,
        prefix=prefix.messages if prefix else (),
        policy=job.policy,
        count_tokens=job.count_tokens,
        chunk_tokens=summariser.chunk_tokens,
    )


async def _retry_write(work: Callable[..., T], *args: object) -> T:
    """Write to the database, and try again while it is away.

    A paid result is not lost because the database is away for a moment.
    """
    return await retry(work, *args, until=monotonic() + RETRY_SECONDS)
