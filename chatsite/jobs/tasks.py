"""Jobs that run in the event loop of a server process: the task of each, which renews
its lease, notices when it is cancelled, and always records an end.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import translation
from django.utils.translation import gettext as _

from chatsite.database import TRANSIENT_DB_ERRORS, name_of, retry
from chatsite.fair_queue import person
from chatsite.protocol import events
from chatsite.turns import runner
from chatsite.turns.models import JOB_LEASE, Job
from memory.leases import Claim, LostError, work_under_lease

from . import queue

logger = logging.getLogger(__name__)

State = Job.State
ENDS = {
    State.DONE: queue.finish,
    State.FAILED: queue.fail,
    State.CANCELLED: queue.give_up,
}
SWEEP_SECONDS = 5.0
RENEW_SECONDS = 1.0
# How long a job that has ended waits for the database to take it.
FINISH_SECONDS = 60.0
# For people who come back later.
RESULTS_KEPT = timedelta(days=1)


class JobError(Exception):
    """A job can't be done; the sentence says why, in the user's language."""


@dataclass(slots=True)
class Running:
    """A job as its work sees it."""

    job: Job
    claim: Claim
    is_cancelled: bool = False
    _paying: int = field(default=0, repr=False)
    _task: "asyncio.Task[Any] | None" = field(default=None, repr=False)

    async def save(self, saved: dict[str, Any]) -> None:
        """Keep what a later job would otherwise pay for again. Raises LostError."""
        self.job.saved = saved
        if not await database_sync_to_async(queue.renew)(self.claim, saved=saved):
            raise LostError

    @asynccontextmanager
    async def paid(self) -> AsyncIterator[None]:
        """Around what costs money and saving it: cancelling waits for its end, and
        nothing else is paid for."""
        if self.is_cancelled:
            raise asyncio.CancelledError
        self._paying += 1
        try:
            yield
        finally:
            self._paying -= 1

    def cancel(self) -> None:
        self.is_cancelled = True
        if not self._paying and self._task:
            self._task.cancel()


Work = Callable[[Running], Awaitable[dict[str, Any]]]

# By kind: the work itself, which returns the result or raises JobError.
WORK: dict[str, Work] = {}
_running: dict[Claim, Running] = {}


async def start_job(claim: Claim, kind: str, conversation_id: int | None) -> None:
    """Run a job of this process in a detached task."""
    await tell_pages(kind, conversation_id, State.QUEUED)
    if runner.is_sweeping():
        runner.spawn_task(run_job(claim, translation.get_language()))


async def tell_pages(kind: str, conversation_id: int | None, state: str) -> None:
    """Have the open pages of its conversation draw it."""
    if conversation_id:
        await events.publish_event(conversation_id, events.Job(kind, state))


async def run_job(claim: Claim, language: str | None = None) -> None:
    """Run one job to its end, however it ends, and tell the pages."""
    job = await database_sync_to_async(_begin_job)(claim)
    if job is None:
        return
    person.set(job.user_id)
    running = _running[claim] = Running(job, claim)
    try:
        with translation.override(language):
            state, value = await _await_outcome(running)
        until = monotonic() + FINISH_SECONDS
        await retry(ENDS[state], claim, *value, until=until)
    except LostError:
        logger.info("job lost job=%s", job.pk)
    except TRANSIENT_DB_ERRORS as error:
        # Another process ends it when its lease has ended.
        logger.warning("job left job=%s: %s", job.pk, name_of(error))
    else:
        logger.info("job ended job=%s kind=%s state=%s", job.pk, job.kind, state)
        await tell_pages(job.kind, job.conversation_id, state)
    finally:
        _running.pop(claim, None)


def _begin_job(claim: Claim) -> Job | None:
    # Any number may run: the limits of spending bound what they pay for.
    waiting = JOB_LEASE.held(claim).filter(state=State.QUEUED)
    return (
        JOB_LEASE.held(claim).first() if waiting.update(state=State.RUNNING) else None
    )


async def _await_outcome(running: Running) -> tuple[str, tuple[Any, ...]]:
    """How it ended, and with what. Raises LostError and errors of the database."""
    try:
        return State.DONE, (await _under_lease(running),)
    except (LostError, *TRANSIENT_DB_ERRORS):
        raise
    except JobError as error:
        return State.FAILED, (str(error),)
    except asyncio.CancelledError:
        if not running.is_cancelled:
            raise
        return State.CANCELLED, ()
    except Exception:
        # The edge of the job: whatever happened, it must not stay without an end.
        logger.exception("job crashed job=%s kind=%s", running.job.pk, running.job.kind)
        return State.FAILED, (_("Something went wrong on this site. Try again."),)


async def _under_lease(running: Running) -> dict[str, Any]:
    """The result of the work, while its lease is renewed. Raises LostError."""

    async def renew() -> None:
        if not await database_sync_to_async(queue.renew)(running.claim):
            raise LostError
        if await database_sync_to_async(queue.is_cancelled)(running.claim):
            running.cancel()

    seconds = min(RENEW_SECONDS, settings.TURN_LEASE_SECONDS / 5)
    running._task = asyncio.ensure_future(WORK[running.job.kind](running))
    return await work_under_lease(running._task, renew, seconds)


_swept_at = -SWEEP_SECONDS


async def sweep_jobs() -> None:
    """End jobs that died, and delete those that ended long ago."""
    global _swept_at
    if monotonic() - _swept_at >= SWEEP_SECONDS:
        _swept_at = monotonic()
        await database_sync_to_async(queue.end_dead)()
        old = Job.objects.filter(_is_old())
        await database_sync_to_async(old.delete)()


def find_due_jobs() -> QuerySet[Job]:
    return Job.objects.filter(JOB_LEASE.expired() | _is_old())


def _is_old() -> Q:
    return Q(finished_at__lt=Now() - RESULTS_KEPT)


def end_own_jobs() -> None:
    """The process ends: its jobs end at once, not when their leases do."""
    for claim in list(_running):
        queue.fail(claim, queue.DIED)


SWEEPER = runner.Job(sweep_jobs, end_own_jobs, find_due_jobs)
