"""The table of jobs: work that takes longer than a request.

A job is queued, run by the process that has what it needs, and ended. Each function is
one short transaction. If a process dies, the sweep of any other process ends its jobs.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, transaction
from django.utils.translation import gettext_noop

from chatsite.turns.models import JOB_LEASE, Job
from memory import staging
from memory.leases import Claim, acquire_slot, new_owner
from memory.models import Conversation

from .worker import Worker

State = Job.State
# The error of a job whose process ended before it did.
DIED = gettext_noop(
    "The server was restarted while it worked on this. Nothing was changed: try again."
)
JOBS = Worker(
    JOB_LEASE,
    cancelled=(State.CANCELLED, ""),
    given_up=(State.FAILED, DIED),
    freed={"place": None},
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
    """Queue a job and delete the finished job of its slot. Raises JobBusyError."""
    owner = new_owner()
    try:
        with transaction.atomic():
            Job.objects.filter(slot=slot).exclude(state__in=Job.UNFINISHED).delete()
            job = Job.objects.create(
                kind=kind,
                user=user,
                conversation=conversation,
                slot=slot,
                owner=owner,
                lease_until=JOB_LEASE.new_expiry(),
                **fields,
            )
    except IntegrityError:
        raise JobBusyError from None
    return Claim(job.pk, owner)


def latest(kind: str, user: AbstractBaseUser) -> Job | None:
    """Return the user's newest job of this kind, which the page shows, or None."""
    return Job.objects.filter(kind=kind, user=user).order_by("-pk").first()


def begin(claim: Claim, places: int | None = None) -> Job | None:
    """Set a waiting job to running if fewer than `places` of its kind run.

    Returns None if all places are taken, or if the job does not wait any more.
    """
    waiting = JOB_LEASE.filter_held(claim).filter(state=State.QUEUED)
    job = waiting.first()

    def take(place: int | None) -> bool:
        return JOB_LEASE.renew_row(waiting, state=State.RUNNING, place=place)

    if job is None:
        return None
    others = Job.objects.filter(kind=job.kind, state=State.RUNNING)
    # Mostly any number may run: the limits of spending bound what they pay for.
    taken = take(None) if places is None else acquire_slot(others, places, take)
    return job if taken else None


def renew(claim: Claim, **values: Any) -> bool:
    """Renew the lease of a job and write the values.

    The values are its progress (`done`, `total`) or the answers that it has paid for
    (`saved`). Returns False if the job was ended or erased.
    """
    return JOB_LEASE.renew_row(JOB_LEASE.filter_held(claim), **values)


def keep(claims: Iterable[Claim]) -> None:
    """Renew the leases of jobs that wait in this process."""
    owners = [claim.owner for claim in claims]
    if owners:
        JOB_LEASE.renew_row(
            Job.objects.filter(owner__in=owners, state__in=Job.UNFINISHED)
        )


@transaction.atomic
def close_job(
    claim: Claim, state: str, error: str = "", result: Mapping[str, Any] = {}
) -> bool:
    """End the job, with an error for users or with a result.

    Rows that it staged are revealed if it is done and abandoned otherwise. Returns
    False if the job was ended or erased before.
    """
    is_ended = JOBS.finish_row(claim, state, error, {"result": result})
    if state != State.DONE:
        staging.abandon_staged(claim.owner)
    elif is_ended:
        staging.reveal_staged(claim.owner)
    return is_ended


@transaction.atomic
def end_dead() -> int:
    """End the jobs that no process keeps alive; return their number."""
    ended = JOBS.end_left()
    for job in ended:
        staging.abandon_staged(job.owner)
    return len(ended)


def end_own() -> None:
    """End the jobs of this process, which ends, without waiting for their leases."""
    for job in JOB_LEASE.filter_held_here():
        close_job(Claim(job.pk, job.owner), State.FAILED, DIED)
