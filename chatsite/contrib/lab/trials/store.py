"""The state of trials in the database: queued, taken by a process, saved, ended. Each
function is one short transaction that names the owner it acts for.
"""

from time import monotonic

from django.conf import settings
from django.db import transaction
from django.db.models import Count, F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce, Now
from django.utils.translation import gettext as _

from chatsite.llm import providers
from chatsite.protocol.errors import CommandError
from chatsite.turns import lifecycle, limits
from chatsite.turns.lifecycle import Result, TurnClaim
from memory import context
from memory.leases import LeaseStatus, new_owner
from memory.models import Conversation, ModelCall
from memory.sql import person_by_person

from .models import TRIAL_LEASE, Trial

State = Trial.State
# Of one person: those that run at once, and those that wait besides.
OWN_RUNNING, OWN_WAITING = 4, 20
PERSON = "conversation__owner"


def admit_trial(user_id: int) -> None:
    """Count a trial that was just stored as one of the person's messages, by the same
    limits. Raises CommandError."""
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
    """Those that no process writes, of people who have a place for them."""
    rows = Trial.objects.filter(TRIAL_LEASE.free(), **{f"{PERSON}__is_active": True})
    same = Trial.objects.filter(TRIAL_LEASE.alive(), **{PERSON: OuterRef(PERSON)})
    count = same.order_by().values(PERSON).annotate(count=Count("pk")).values("count")
    running = Coalesce(Subquery(count), 0)
    return rows.annotate(running=running).filter(running__lt=OWN_RUNNING)


def claim_trial() -> tuple[list[Trial], TurnClaim | None]:
    """The trials that ended without a process, and the next one for this process: the
    oldest of the person who has the fewest."""
    ended = _end_left_trials()
    rows = person_by_person(find_due_trials(), PERSON)
    trial = rows.select_related("conversation").first()
    return ended, _take_trial(trial) if trial else None


@transaction.atomic
def _take_trial(trial: Trial) -> TurnClaim | None:
    owner, started = new_owner(), monotonic()
    # Two processes must not give a person's last place away twice.
    limits.lock_allowance(trial.conversation.owner_id)
    rows = Trial.objects.filter(
        pk__in=find_due_trials().filter(pk=trial.pk).values("pk")
    )
    values = {"state": State.RUNNING, "attempt": F("attempt") + 1}
    if not TRIAL_LEASE.claim(rows, owner, **values):
        return None
    ids = (trial.pk, owner, trial.conversation_id, trial.attempt + 1)
    return TurnClaim(*ids, renewed_at=started)


def _end_left_trials() -> list[Trial]:
    """End what a dead process left and none may go on with."""
    left = Trial.objects.filter(TRIAL_LEASE.free())
    ended = []
    for rows, state, error in (
        (left.exclude(cancel_requested_at=None), State.STOPPED, ""),
        (
            left.filter(state=State.RUNNING, attempt__gte=settings.TURN_MAX_ATTEMPTS),
            State.INTERRUPTED,
            "interrupted",
        ),
    ):
        ended += [t for t in rows if _end_rows(rows.filter(pk=t.pk), state, error)]
    rows = Trial.objects.select_related("message")
    return list(rows.filter(pk__in=[trial.pk for trial in ended]))


def _end_rows(
    rows: QuerySet[Trial], state: str, error: str = "", **values: object
) -> bool:
    ending = {"state": state, "error": error, "finished_at": Now(), **values}
    return bool(rows.update(lease_until=None, **ending))


@transaction.atomic
def begin_trial(
    claim: TurnClaim, built: context.Built, model: str
) -> TurnClaim | LeaseStatus:
    """Record the request that is about to be sent, unless the trial was lost or is to
    be stopped."""
    started = monotonic()
    rows = Conversation.objects.select_for_update().filter(pk=claim.conversation_id)
    conversation = rows.order_by().first()
    if conversation is None:
        return LeaseStatus.LOST
    call = ModelCall.objects.create(
        conversation=conversation,
        purpose=ModelCall.Purpose.TRIAL,
        refs=built.refs,
        sha256=built.sha256,
        model=model,
        provider=providers.name_provider(model),
        tokens_estimated=built.tokens,
        parts=built.parts,
    )
    context.keep_prompts(conversation, built)
    held = TRIAL_LEASE.held(claim)
    hold = TRIAL_LEASE.renew_unless_cancelled(held, call=call, model=model)
    if hold is not LeaseStatus.KEPT:
        transaction.set_rollback(True)
        return hold
    recorded = {"call_id": call.pk, "tokens": built.tokens, "renewed_at": started}
    recorded["model"] = model
    return TurnClaim(
        claim.row_id, claim.owner, claim.conversation_id, claim.attempt, **recorded
    )


def save_trial(claim: TurnClaim, text: str) -> LeaseStatus:
    """Save the answer so far and renew the lease, in one fenced statement."""
    return TRIAL_LEASE.renew_unless_cancelled(TRIAL_LEASE.held(claim), text=text)


@transaction.atomic
def finish_trial(claim: TurnClaim, result: Result) -> Trial | None:
    """End it and bill its last request. None: lost. A second call, after an answer that
    got lost, finds what the first one did."""
    asked = list(dict.fromkeys(each["name"] or "" for each in result.calls))
    values = {"text": result.text, "asked": asked}
    is_ours = _end_rows(TRIAL_LEASE.held(claim), result.state, result.error, **values)
    rows = Trial.objects.select_related("conversation", "message")
    ended = rows.filter(pk=claim.row_id, owner=claim.owner)
    trial = ended.exclude(state__in=Trial.UNFINISHED).first()
    if trial and is_ours and claim.call_id:
        lifecycle.bill(trial.conversation, claim, result)
    return trial


@transaction.atomic
def end_trial(trial: Trial) -> Trial:
    """End it at once while it waits; ask the process that writes it to end."""
    rows = Trial.objects.filter(pk=trial.pk)
    if not _end_rows(rows.filter(state=State.QUEUED), State.STOPPED):
        rows.filter(state=State.RUNNING).update(cancel_requested_at=Now())
    return rows.select_related("message", "call").get()


def release_trials() -> None:
    """Hand the trials of this process back before it ends; that was no attempt."""
    again = {"state": State.QUEUED, "attempt": F("attempt") - 1}
    TRIAL_LEASE.release(TRIAL_LEASE.held_here(), **again)
