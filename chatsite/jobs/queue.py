"""The table of jobs: work that takes longer than a request is queued, run by the
process that has what it needs, and ended. Each function is one short transaction; a job
whose process died is ended by the sweep of any other.
"""

import uuid
from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, models, transaction
from django.db.models.functions import Now
from django.utils.translation import gettext_noop

from chatsite.turns.models import JOB_LEASE, Job
from memory import staging
from memory.leases import Claim, take_place
from memory.models import Conversation

State = Job.State
# The error of a job whose process ended before it did.
DIED = gettext_noop(
    "The server was restarted while it worked on this. Nothing was changed: try again."
)


class JobBusyError(Exception):
    """The slot has an unfinished job already."""


def add(
    kind: str,
    user: AbstractBaseUser,
    slot: str,
    conversation: Conversation | None = None,
    **fields: dict[str, Any],
) -> Claim:
    """A job that waits; what the slot had before is forgotten. Raises JobBusyError."""
    owner = uuid.uuid4().hex
    try:
        with transaction.atomic():
            Job.objects.filter(slot=slot).exclude(state__in=Job.UNFINISHED).delete()
            job = Job.objects.create(
                kind=kind,
                user=user,
                conversation=conversation,
                slot=slot,
                owner=owner,
                lease_until=JOB_LEASE.end(),
                **fields,
            )
    except IntegrityError:
        raise JobBusyError from None
    return Claim(job.pk, owner)


def latest(kind: str, user: AbstractBaseUser) -> Job | None:
    """What the page shows: the person's newest job of this kind."""
    return Job.objects.filter(kind=kind, user=user).order_by("-pk").first()


def begin(claim: Claim, places: int) -> bool:
    """Let a waiting job run, if fewer than `places` of its kind do."""
    waiting = JOB_LEASE.held(claim).filter(state=State.QUEUED)
    job = waiting.first()
    if job is None:
        return False
    others = Job.objects.filter(kind=job.kind, state=State.RUNNING)
    return take_place(
        others, places, lambda n: JOB_LEASE.renew(waiting, state=State.RUNNING, place=n)
    )


def renew(claim: Claim, **values: Any) -> bool:
    """Keep the lease, and set how far it is (`done`, `total`) or what it has paid for
    (`saved`). False: the job was ended or erased."""
    return JOB_LEASE.renew(JOB_LEASE.held(claim), **values)


def keep(claims: Iterable[Claim]) -> None:
    """Keep the leases of jobs that wait in this process."""
    owners = [claim.owner for claim in claims]
    if owners:
        JOB_LEASE.renew(Job.objects.filter(owner__in=owners, state__in=Job.UNFINISHED))


def cancel(job: Job) -> None:
    """Ask it to end; what it is paying for is kept first."""
    unfinished = Job.objects.filter(pk=job.pk, state__in=Job.UNFINISHED)
    unfinished.update(cancel_requested_at=Now())


def is_cancelled(claim: Claim) -> bool:
    return JOB_LEASE.held(claim).exclude(cancel_requested_at=None).exists()


@transaction.atomic
def finish(claim: Claim, result: dict[str, Any]) -> bool:
    """End it as done, and show what it wrote. False: it was ended or erased."""
    is_done = _end(JOB_LEASE.held(claim), State.DONE, result=result)
    if is_done:
        staging.reveal_staged(claim.owner)
    return is_done


@transaction.atomic
def fail(claim: Claim, error: str) -> bool:
    """End it with an error for people; nothing that it wrote stays."""
    staging.abandon_staged(claim.owner)
    return _end(JOB_LEASE.held(claim), State.FAILED, error=error)


@transaction.atomic
def give_up(claim: Claim) -> bool:
    """End it as cancelled; nothing that it wrote stays."""
    staging.abandon_staged(claim.owner)
    return _end(JOB_LEASE.held(claim), State.CANCELLED)


def end_dead() -> int:
    """End the jobs that no process keeps alive; how many they were."""
    ended = 0
    for job in Job.objects.filter(JOB_LEASE.expired()).only("owner"):
        dead = JOB_LEASE.held(Claim(job.pk, job.owner)).filter(JOB_LEASE.expired())
        with transaction.atomic():
            if _end(dead, State.FAILED, error=DIED):
                staging.abandon_staged(job.owner)
                ended += 1
    return ended


def _end(rows: models.QuerySet[Job], state: str, **values: Any) -> bool:
    closed = {"place": None, "lease_until": None, "finished_at": Now()}
    return bool(rows.update(state=state, **closed, **values))
