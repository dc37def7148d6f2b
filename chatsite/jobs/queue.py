"""Work that takes longer than a request: queued, run in few places by the process that
has what it needs, ended. Each function is one short transaction; a job whose process
died is ended by the sweep of any other.
"""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, models, transaction
from django.db.models.functions import Now
from django.utils.translation import gettext_noop

from chatsite.turns.models import Job
from memory import staging
from memory.models import Conversation

State = Job.State
LEASE = Job.LEASE
# Said of a job whose process ended before it did.
DIED = gettext_noop(
    "The server was restarted while it worked on this. Nothing was changed: try again."
)


class JobBusyError(Exception):
    """The slot has an unfinished job already."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to work on a job, as long as its lease is renewed."""

    job_id: int
    owner: str


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
            old = Job.objects.filter(slot=slot).exclude(state__in=Job.UNFINISHED)
            old.delete()
            job = Job.objects.create(
                kind=kind,
                user=user,
                conversation=conversation,
                slot=slot,
                owner=owner,
                lease_until=LEASE.end(),
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
    waiting = held(claim).filter(state=State.QUEUED)
    job = waiting.first()
    if job is None:
        return False
    others = Job.objects.filter(kind=job.kind, state=State.RUNNING)
    taken = set(others.values_list("place", flat=True))
    free = next((n for n in range(places) if n not in taken), None)
    if free is None:
        return False
    try:
        with transaction.atomic():
            return LEASE.renew(waiting, state=State.RUNNING, place=free)
    except IntegrityError:
        return False  # another process has just taken the place


def held(claim: Claim) -> models.QuerySet[Job]:
    return Job.objects.filter(LEASE.held_by(claim.owner), pk=claim.job_id)


def renew(claim: Claim, **values: int) -> bool:
    """Keep the lease and set `done` or `total`. False: the job was ended or erased."""
    return LEASE.renew(held(claim), **values)


def keep(claims: Iterable[Claim]) -> None:
    """Keep the leases of jobs that wait in this process."""
    owners = [claim.owner for claim in claims]
    if owners:
        LEASE.renew(Job.objects.filter(owner__in=owners, state__in=Job.UNFINISHED))


def save(claim: Claim, saved: dict[str, Any]) -> bool:
    """Keep what was paid for. False: the job was ended or erased."""
    return LEASE.renew(held(claim), saved=saved)


def cancel(job: Job) -> None:
    """Ask it to end; what it is paying for is kept first."""
    rows = Job.objects.filter(pk=job.pk, state__in=Job.UNFINISHED)
    rows.update(cancel_requested_at=Now())


def is_cancelled(claim: Claim) -> bool:
    return held(claim).exclude(cancel_requested_at=None).exists()


@transaction.atomic
def finish(claim: Claim, result: dict[str, Any]) -> bool:
    """End it as done, and show what it wrote. False: it was ended or erased."""
    done = bool(_end(held(claim), State.DONE, result=result))
    if done:
        staging.reveal(claim.owner)
    return done


@transaction.atomic
def fail(claim: Claim, error: str) -> bool:
    """End it with what people are told; nothing that it wrote stays."""
    staging.abandon(claim.owner)
    return bool(_end(held(claim), State.FAILED, error=error))


@transaction.atomic
def give_up(claim: Claim) -> bool:
    """End it as cancelled; nothing that it wrote stays."""
    staging.abandon(claim.owner)
    return bool(_end(held(claim), State.CANCELLED))


def end_dead() -> int:
    """End the jobs that no process keeps alive; how many they were."""
    dead = Job.objects.filter(LEASE.expired())
    claims = [Claim(*values) for values in dead.values_list("pk", "owner")]
    return sum(_end_one_dead(claim) for claim in claims)


@transaction.atomic
def _end_one_dead(claim: Claim) -> bool:
    ended = _end(held(claim).filter(LEASE.expired()), State.FAILED, error=DIED)
    if ended:
        staging.abandon(claim.owner)
    return bool(ended)


def _end(rows: models.QuerySet[Job], state: str, **values: Any) -> int:
    return rows.update(
        state=state, place=None, lease_until=None, finished_at=Now(), **values
    )
