"""The state of experiments in the database: queued, claimed, paid, ended.

Each function is one short transaction that names the owner it acts for.
"""

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import F, OuterRef
from django.utils.translation import gettext as _

from chatsite.jobs.worker import Worker
from chatsite.protocol.errors import CommandError
from chatsite.turns import limits
from memory.leases import Claim, acquire_slot
from memory.models import Conversation
from memory.sql import count_rows_by, round_robin_by_user

from . import replay_steps
from .models import EXPERIMENT_LEASE, Experiment

State = Experiment.State
MAX_ATTEMPTS = 3
EXPERIMENTS = Worker(
    EXPERIMENT_LEASE,
    lambda: MAX_ATTEMPTS,
    cancelled=(State.STOPPED, "cancelled"),
    freed={"place": None},
)
# Maximum of waiting experiments: in all, and per user.
MAX_QUEUED, OWN_QUEUED = 20, 10


def find_refusal(user_id: int) -> str:
    """Return the reason why the user can start no experiment at all, or ""."""
    try:
        limits.admit_spending(user_id)
    except CommandError as error:
        return error.detail
    if settings.EXPERIMENTS_AT_ONCE <= 0:
        return _(
            "Experiments are switched off on this site (EXPERIMENTS_AT_ONCE is 0)."
        )
    return ""


def full_at(user_id: int) -> int:
    """Return how many experiments wait if no more may, or 0 if there is room."""
    waiting = Experiment.objects.filter(state=State.QUEUED, sample=None)
    own, count = waiting.filter(user=user_id).count(), waiting.count()
    return max(own, count) if own >= OWN_QUEUED or count >= MAX_QUEUED else 0


def claim() -> Claim | None:
    """Claim the next experiment, or return None.

    Experiments that a dead process left come first, then the oldest one of the user
    with the fewest running and waiting. None if nothing waits, or if the site runs
    as many as it may.
    """
    waiting = due()
    left = waiting.filter(state=State.RUNNING).order_by("pk").first()
    experiment = left or _in_their_turn(waiting).first()
    if experiment is None:
        return None

    def take(place: int) -> Claim | None:
        return EXPERIMENTS.claim_row(waiting, experiment.pk, place=place)

    if left:
        return take(left.place)
    running = Experiment.objects.filter(state=State.RUNNING)
    return acquire_slot(running, settings.EXPERIMENTS_AT_ONCE, take)


def _in_their_turn(waiting: models.QuerySet[Experiment]) -> models.QuerySet[Experiment]:
    """Order waiting experiments user by user, users with the fewest running first."""
    of_same = Experiment.objects.filter(state=State.RUNNING, user=OuterRef("user"))
    rows = waiting.annotate(running=count_rows_by(of_same, "user"))
    ordered = round_robin_by_user(rows, "user")
    return ordered.order_by("running", *ordered.query.order_by)


def due() -> models.QuerySet[Experiment]:
    """Return the unfinished experiments that no process plays."""
    return Experiment.objects.filter(EXPERIMENT_LEASE.match_free())


def save(claim: Claim, steps: dict[str, Any], done: int) -> bool:
    """Save the steps so far, to continue after a crash; return whether it worked."""
    held = EXPERIMENT_LEASE.filter_held(claim)
    return EXPERIMENT_LEASE.renew_row(held, result={"steps": steps}, done_messages=done)


def reserve(claim: Claim, tokens: int) -> bool:
    """Reserve tokens before a request is sent.

    Return False if the budget has no room, or the experiment was lost.
    """
    within = EXPERIMENT_LEASE.filter_held(claim).filter(spent__lte=F("budget") - tokens)
    return bool(within.update(spent=F("spent") + tokens))


def settle(claim: Claim, reserved: int, read: int, written: int) -> None:
    """Replace the tokens reserved for a request by those it used."""
    EXPERIMENT_LEASE.filter_held(claim).update(
        spent=F("spent") - reserved + read + written,
        requests=F("requests") + 1,
        tokens_in=F("tokens_in") + read,
        tokens_out=F("tokens_out") + written,
    )


def forget(conversation: Conversation, seq: int, **sent: Any) -> None:
    """Remove the text of message `seq`, which was deleted permanently.

    Unfinished experiments with the message are stopped, and summaries and facts that
    can quote it are blanked.
    """
    rows = Experiment.objects.filter(conversation=conversation, last_seq__gte=seq)
    going = rows.filter(state__in=Experiment.UNFINISHED)
    EXPERIMENTS.end_rows(going, State.STOPPED, "message_deleted", result=None)
    for experiment in rows.exclude(result=None):
        experiment.result = replay_steps.without_words(experiment.result, seq)
        experiment.save(update_fields=["result"])
