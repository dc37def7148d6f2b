"""The task of each job that runs in the event loop of a server process.

It renews the job's lease, notices a cancellation, and always records an end.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from channels.db import database_sync_to_async
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import translation
from django.utils.translation import gettext as _

from chatsite import plugins
from chatsite.fair_queue import work_owner
from chatsite.protocol import events
from chatsite.turns import runner
from chatsite.turns.models import JOB_LEASE, Job
from memory.leases import Claim, LostError

from . import queue

logger = logging.getLogger(__name__)

State = Job.State
# For users who come back later.
RESULTS_KEPT = timedelta(days=1)


class JobError(Exception):
    """A job can't be done; the sentence says why, in the user's language."""


@dataclass(slots=True)
class RunningJob:
    """A job, as the function that does its work gets it."""

    job: Job
    claim: Claim
    is_cancelled: bool = False
    _paying: int = field(default=0, repr=False)
    _task: "asyncio.Task[Any] | None" = field(default=None, repr=False)

    async def save(self, saved: dict[str, Any]) -> None:
        """Save answers that a later job would otherwise pay for again.

        Raises LostError.
        """
        self.job.saved = saved
        if not await database_sync_to_async(queue.renew)(self.claim, saved=saved):
            raise LostError

    @asynccontextmanager
    async def paid_call(self) -> AsyncIterator[None]:
        """Enclose a call that costs money, and saving its answer.

        A cancellation waits for its end. Raises CancelledError in a cancelled job, so
        that no other call is paid for.
        """
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


@dataclass(frozen=True, slots=True)
class JobWork:
    """The work of a kind of job: `run` returns the result or raises JobError.

    The module that knows the kind registers it as a source.
    """

    run: Callable[[RunningJob], Awaitable[dict[str, Any]]]


async def start_job(claim: Claim, kind: str, conversation_id: int | None) -> None:
    """Run a job of this process in a detached task."""
    await tell_pages(kind, conversation_id, State.QUEUED)
    if runner.is_sweeping():
        runner.spawn_task(run_job(claim, translation.get_language()))


async def tell_pages(kind: str, conversation_id: int | None, state: str) -> None:
    """Have the open pages of the conversation draw the job."""
    if conversation_id:
        await events.publish_event(conversation_id, events.JobState(kind, state))


async def run_job(claim: Claim, language: str | None = None) -> None:
    """Run one job, record how it ended, and notify the pages."""
    job = await database_sync_to_async(queue.begin)(claim)
    if job is None:
        return
    work_owner.set(job.user_id)
    with translation.override(language):
        why = _("Something went wrong on this site. Try again.")
        work, crashed = _do_job(RunningJob(job, claim)), (claim, State.FAILED, why)
        found = await runner.work_to_end("job", claim, work, queue.close_job, crashed)
    if found:
        _claim, state, *_rest = found[0]
        logger.info("job ended job=%s kind=%s state=%s", job.pk, job.kind, state)
        await tell_pages(job.kind, job.conversation_id, state)


async def _do_job(running: RunningJob) -> tuple[Any, ...]:
    """Do the work; return the arguments of queue.close_job().

    Raises LostError and errors of the database.
    """
    claim = running.claim
    work = plugins.sources[JobWork][running.job.kind]
    running._task = asyncio.ensure_future(work.run(running))
    try:
        result = await queue.JOBS.work_under_claim(claim, running._task, running.cancel)
    except JobError as error:
        return claim, State.FAILED, str(error)
    except asyncio.CancelledError:
        if not running.is_cancelled:
            raise
        return claim, State.CANCELLED
    return claim, State.DONE, "", result


def sweep_jobs() -> None:
    """End jobs that died, and delete those that ended long ago."""
    queue.end_dead()
    Job.objects.filter(_is_old()).delete()


def find_due_jobs() -> QuerySet[Job]:
    return Job.objects.filter(JOB_LEASE.match_expired() | _is_old())


def _is_old() -> Q:
    return Q(finished_at__lt=Now() - RESULTS_KEPT)


SWEEPER = plugins.BackgroundJob(
    database_sync_to_async(sweep_jobs), queue.end_own, find_due_jobs
)
