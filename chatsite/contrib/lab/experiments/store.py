"""The state of experiments in the database: queued, taken by a process, paid from a
budget, ended. Each function is one short transaction that names the owner it acts for.
"""

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Count, F, OuterRef, Subquery
from django.db.models.functions import Coalesce, Now

from memory.leases import Claim, LeaseStatus, new_owner, take_place
from memory.models import Conversation
from memory.sql import person_by_person

from . import steps
from .models import EXPERIMENT_LEASE, Experiment

State = Experiment.State
MAX_ATTEMPTS = 3
# Experiments that may wait while others run: of all, and of one person.
MAX_QUEUED, OWN_QUEUED = 20, 10


def full_at(user_id: int) -> int:
    """How many experiments wait already, where no more may; 0: there is room."""
    waiting = Experiment.objects.filter(state=State.QUEUED, sample=None)
    own, count = waiting.filter(user=user_id).count(), waiting.count()
    return max(own, count) if own >= OWN_QUEUED or count >= MAX_QUEUED else 0


def claim() -> Claim | None:
    """Take the next experiment: one that a dead process left, else the oldest of the
    person who has the fewest running and waiting.

    None: nothing waits, or as many run on the site as may.
    """
    waiting = due()
    if not waiting.exists():
        return None
    # Those that no process may play on: cancelled, or given up after some attempts.
    _end(waiting.exclude(cancel_requested_at=None), State.STOPPED, "cancelled")
    worn = waiting.filter(state=State.RUNNING, attempt__gte=MAX_ATTEMPTS)
    _end(worn, State.FAILED, "interrupted")
    left = waiting.filter(state=State.RUNNING).order_by("pk").first()
    experiment = left or _in_their_turn(waiting).first()
    if experiment is None:
        return None
    owner = new_owner()
    rows = Experiment.objects.filter(pk=experiment.pk)
    values = {"state": State.RUNNING, "attempt": F("attempt") + 1}

    def take(place: int) -> bool:
        return EXPERIMENT_LEASE.claim(rows, owner, place=place, **values)

    running = Experiment.objects.filter(state=State.RUNNING)
    places = settings.EXPERIMENTS_AT_ONCE
    taken = take(left.place) if left else take_place(running, places, take)
    return Claim(experiment.pk, owner) if taken else None


def _in_their_turn(waiting: models.QuerySet[Experiment]) -> models.QuerySet[Experiment]:
    """Person by person, those first who have none running."""
    of_same = Experiment.objects.filter(state=State.RUNNING, user=OuterRef("user"))
    count = of_same.order_by().values("user").annotate(count=Count("pk"))
    running = Coalesce(Subquery(count.values("count")), 0)
    ordered = person_by_person(waiting.annotate(running=running), "user")
    return ordered.order_by("running", *ordered.query.order_by)


def due() -> models.QuerySet[Experiment]:
    """Those that no process plays."""
    return Experiment.objects.filter(EXPERIMENT_LEASE.free())


def renew(claim: Claim, done: int, *, heed: bool = True) -> LeaseStatus:
    """Keep the lease, record the progress, and find out whether it was cancelled.

    `heed`: a cancelled one is not renewed.
    """
    if heed:
        return EXPERIMENT_LEASE.renew_unless_cancelled(
            EXPERIMENT_LEASE.held(claim), done_messages=done
        )
    kept = EXPERIMENT_LEASE.renew(EXPERIMENT_LEASE.held(claim), done_messages=done)
    return LeaseStatus.KEPT if kept else LeaseStatus.LOST


def save(claim: Claim, steps: dict[str, Any], done: int) -> bool:
    """Where to go on after a crash."""
    return EXPERIMENT_LEASE.renew(
        EXPERIMENT_LEASE.held(claim), result={"steps": steps}, done_messages=done
    )


def reserve(claim: Claim, tokens: int) -> bool:
    """Set tokens aside before a request is sent. False: the budget has no room, or the
    experiment was lost."""
    within = EXPERIMENT_LEASE.held(claim).filter(spent__lte=F("budget") - tokens)
    return bool(within.update(spent=F("spent") + tokens))


def settle(claim: Claim, reserved: int, read: int, written: int) -> None:
    """Replace what was set aside for a request by what it took."""
    EXPERIMENT_LEASE.held(claim).update(
        spent=F("spent") - reserved + read + written,
        requests=F("requests") + 1,
        tokens_in=F("tokens_in") + read,
        tokens_out=F("tokens_out") + written,
    )


def finish(
    claim: Claim,
    state: str,
    error: str = "",
    result: dict[str, Any] | None = None,
    done: int | None = None,
) -> bool:
    """Close it; what is not given stays as it was saved."""
    values = {"result": result, "done_messages": done}
    known = {name: value for name, value in values.items() if value is not None}
    return bool(_end(EXPERIMENT_LEASE.held(claim), state, error, **known))


def _end(
    rows: models.QuerySet[Experiment], state: str, error: str = "", **values: Any
) -> int:
    return EXPERIMENT_LEASE.release(
        rows, state=state, error=error, place=None, finished_at=Now(), **values
    )


def forget(conversation: Conversation, seq: int, **sent: Any) -> None:
    """Message `seq` was deleted for good: no experiment continues with its text, and
    what was written about it is blanked."""
    rows = Experiment.objects.filter(conversation=conversation, last_seq__gte=seq)
    going = rows.filter(state__in=Experiment.UNFINISHED)
    _end(going, State.STOPPED, "message_deleted", result=None)
    for experiment in rows.exclude(result=None):
        experiment.result = steps.without_words(experiment.result, seq)
        experiment.save(update_fields=["result"])


def cancel(experiment: Experiment) -> None:
    """Stop it: at once while it waits, otherwise when its player renews the lease."""
    rows = Experiment.objects.filter(pk=experiment.pk)
    if not end_waiting(rows):
        rows.filter(state=State.RUNNING).update(cancel_requested_at=Now())


def end_waiting(rows: models.QuerySet[Experiment]) -> int:
    """Those of the rows that no process plays, as cancelled; how many."""
    return _end(rows.filter(state=State.QUEUED), State.STOPPED, "cancelled")


def release() -> None:
    """Hand the experiments of this process back before it ends; that was no attempt."""
    again = {"state": State.QUEUED, "place": None, "attempt": F("attempt") - 1}
    EXPERIMENT_LEASE.release(EXPERIMENT_LEASE.held_here(), **again)
