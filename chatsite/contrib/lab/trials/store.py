"""The state of trials in the database: queued, claimed, saved, ended.

Each function is one short transaction that names the owner it acts for.
"""

from dataclasses import replace
from time import monotonic

from django.conf import settings
from django.db import transaction
from django.db.models import OuterRef, QuerySet
from django.utils.translation import gettext as _

from chatsite.jobs.worker import Worker
from chatsite.protocol.errors import CommandError
from chatsite.turns import lifecycle, limits
from chatsite.turns.lifecycle import TurnClaim, TurnResult
from memory import context
from memory.leases import LeaseStatus
from memory.models import Conversation, ModelCall
from memory.sql import count_rows_by, round_robin_by_user

from .models import TRIAL_LEASE, Trial

State = Trial.State
# Of one user: those that run at once, and those that wait besides.
OWN_RUNNING, OWN_WAITING = 4, 20
PERSON = "conversation__owner"
TRIALS = Worker(
    TRIAL_LEASE,
    lambda: settings.TURN_MAX_ATTEMPTS,
    given_up=(State.INTERRUPTED, "interrupted"),
)


def admit_trial(user_id: int) -> None:
    """Count a trial that was just stored as one of the user's messages.

    The limits are the same. Raises CommandError.
    """
    limits.admit_turn(user_id, stored=False)
    own = Trial.objects.filter(**{PERSON: user_id, "state": State.QUEUED})
    if own.count() > OWN_WAITING:
        words = _(
            "%(limit)s of your trials are waiting already. Let some of them finish, or "
            "stop them, and try again."
        )
        detail = words % {"limit": OWN_WAITING}
        raise CommandError("queue_full", detail, retry_after=limits.QUEUE_SECONDS)


def find_due_trials() -> QuerySet[Trial]:
    """Return the trials that no process writes, of users who have a free slot."""
    rows = Trial.objects.filter(
        TRIAL_LEASE.match_free(), **{f"{PERSON}__is_active": True}
    )
    same = Trial.objects.filter(TRIAL_LEASE.match_alive(), **{PERSON: OuterRef(PERSON)})
    running = count_rows_by(same, PERSON)
    return rows.annotate(running=running).filter(running__lt=OWN_RUNNING)


def claim_trial() -> TurnClaim | None:
    """Claim the next trial: the oldest one of the user who has the fewest."""
    rows = round_robin_by_user(find_due_trials(), PERSON)
    trial = rows.select_related("conversation").first()
    return _take_trial(trial) if trial else None


@transaction.atomic
def _take_trial(trial: Trial) -> TurnClaim | None:
    started = monotonic()
    # Two processes must not give a user's last slot away twice.
    limits.lock_allowance(trial.conversation.owner_id)
    due = find_due_trials().filter(pk=trial.pk).values("pk")
    claim = TRIALS.claim_row(Trial.objects.filter(pk__in=due), trial.pk)
    if claim is None:
        return None
    ids = (claim.row_id, claim.owner, trial.conversation_id, trial.attempt + 1)
    return TurnClaim(*ids, renewed_at=started)


def end_left_trials() -> list[Trial]:
    """End what a dead process left and none may go on with; return these trials."""
    rows = Trial.objects.select_related("message")
    return list(rows.filter(pk__in=[trial.pk for trial in TRIALS.end_left()]))


@transaction.atomic
def begin_trial(
    claim: TurnClaim, built: context.RequestContext, model: str
) -> TurnClaim | LeaseStatus:
    """Record the request that is about to be sent.

    Nothing is recorded if the trial was lost or is to be stopped.
    """
    started = monotonic()
    rows = Conversation.objects.select_for_update().filter(pk=claim.conversation_id)
    conversation = rows.order_by().first()
    if conversation is None:
        return LeaseStatus.LOST
    purpose = ModelCall.Purpose.TRIAL
    call = lifecycle.record_request(conversation, built, model, purpose)
    hold = TRIALS.renew_claim(claim, call=call, model=model)
    if hold is not LeaseStatus.KEPT:
        transaction.set_rollback(True)
        return hold
    recorded = {"call_id": call.pk, "tokens": built.tokens, "model": model}
    return replace(claim, **recorded, renewed_at=started)


@transaction.atomic
def finish_trial(claim: TurnClaim, result: TurnResult) -> Trial | None:
    """End the trial and bill its last request; None: lost.

    A second call, after an answer that got lost, finds what the first one did.
    """
    asked = list(dict.fromkeys(each["name"] or "" for each in result.calls))
    values = {"text": result.text, "asked": asked}
    is_ours = TRIALS.finish_row(claim, result.state, result.error, values)
    rows = Trial.objects.select_related("conversation", "message")
    ended = rows.filter(pk=claim.row_id, owner=claim.owner)
    trial = ended.exclude(state__in=Trial.UNFINISHED).first()
    if trial and is_ours and claim.call_id:
        lifecycle.bill(trial.conversation, claim, result)
    return trial


@transaction.atomic
def end_trial(trial: Trial) -> Trial:
    """End a waiting trial at once; a running one when its process notices."""
    rows = Trial.objects.filter(pk=trial.pk)
    TRIALS.cancel_rows(rows)
    return rows.select_related("message", "call").get()
