"""The lease on a conversation for compaction, and when to look at it again.

A compaction is claimed by a lease of the database's clock, renewed while the model
writes.
"""

from collections.abc import Collection
from datetime import timedelta
from typing import Any

from django.db.models import Case, F, Q, QuerySet, When
from django.db.models.functions import Least, Now

from memory.leases import Claim, Lease, new_owner
from memory.models import Conversation
from memory.sql import Update, prepared_update, round_robin_by_user

MAX_FAILURES = 3
BACKOFF = timedelta(seconds=30)
# The longest time that a dead process blocks others.
LEASE = timedelta(seconds=20)
DUE_AT_ONCE, OTHERS_AT_ONCE = 50, 4
COMPACTION_LEASE = Lease(
    Conversation, lambda: LEASE, "compaction_lease_until", "compaction_owner"
)


def claim_compaction(conversation_id: int, *, force: bool) -> Claim | None:
    """Claim the conversation to compact it now.

    `force`: also while backing off, and after too many failures. Return None if it may
    not be compacted, or another process does so.
    """
    rows = Conversation.objects.filter(pk=conversation_id, deleted_at=None)
    if not force:
        rows = rows.filter(_may_retry())
    # A lease that was not released belongs to a compaction that died, and what it paid
    # for is lost. If that were not counted, it would die and pay again without end.
    died = Case(When(compaction_owner="", then=0), default=1)
    claim = Claim(conversation_id, new_owner())
    values = {
        # If this process dies, the next look is due when its lease has ended.
        "compaction_due_at": COMPACTION_LEASE.new_expiry(),
        "compaction_failures": F("compaction_failures") + died,
    }
    return claim if COMPACTION_LEASE.claim_row(rows, claim.owner, **values) else None


def is_held(conversation_id: int) -> bool:
    """Return whether a process compacts the conversation just now."""
    return Conversation.objects.filter(
        COMPACTION_LEASE.match_alive(), pk=conversation_id
    ).exists()


def _may_retry() -> Q:
    waited = Q(compaction_retry_at=None) | Q(compaction_retry_at__lt=Now())
    return waited & Q(compaction_failures__lt=MAX_FAILURES)


def due_compactions(limit: int = DUE_AT_ONCE) -> list[int]:
    """Return conversations that are due and that no process compacts.

    A large import does not keep other users waiting.
    """
    return _first_of(waiting_compactions(), limit)


def due_for_others(under_way: Collection[int]) -> list[int]:
    """Return due conversations of users who own none of those under way.

    These users do not wait until those are compacted.
    """
    busy = Conversation.objects.filter(pk__in=under_way).values("owner_id")
    return _first_of(waiting_compactions().exclude(owner_id__in=busy), OTHERS_AT_ONCE)


def _first_of(rows: QuerySet[Conversation], limit: int) -> list[int]:
    ordered = round_robin_by_user(rows, "owner_id", "compaction_due_at")
    return list(ordered.values_list("pk", flat=True)[:limit])


def waiting_compactions() -> QuerySet[Conversation]:
    rows = Conversation.objects.filter(
        COMPACTION_LEASE.match_free(), _may_retry(), deleted_at=None
    )
    return rows.filter(compaction_due_at__lte=Now())


def mark_due(conversation_id: int, **values: object) -> None:
    """Let the compaction job look again, after a new message or a user's action.

    `values`: other columns of the conversation to write with it. A job that has given
    up tries once more when its back-off is over.
    """
    _mark_due(pk=conversation_id, **values)


def mark_all_due(rows: QuerySet[Conversation], **values: object) -> None:
    """Mark several conversations due, as mark_due() marks one."""
    rows.update(**_DUE, **values)


_DUE = {
    "compaction_due_at": Now(),
    "compaction_failures": Least("compaction_failures", MAX_FAILURES - 1),
}


@prepared_update()
def _mark_due(pk: Any, **values: Any) -> Update:
    return Conversation.objects.filter(pk=pk), _DUE | values


def may_compact(conversation: Conversation) -> bool:
    """Return whether the compaction job still tries, or has given up."""
    return conversation.compaction_failures < MAX_FAILURES


def reset_back_off(conversation: Conversation) -> None:
    """Let the compaction job try again at once."""
    Conversation.objects.filter(pk=conversation.pk).update(
        compaction_failures=0, compaction_retry_at=None, compaction_due_at=Now()
    )


def stop_after_step(conversation_id: int) -> None:
    """End a running compaction after its current step, which is paid for.

    The next turn marks the conversation due again.
    """
    rows = Conversation.objects.filter(
        COMPACTION_LEASE.match_alive(), pk=conversation_id
    )
    rows.update(compaction_due_at=None)


def is_stopped(conversation: Conversation, claim: Claim) -> bool:
    """Return whether the compaction of this claim was stopped.

    While a lease is held, `compaction_due_at` is its end; None means that it was
    stopped.
    """
    is_held = conversation.compaction_owner == claim.owner
    return is_held and conversation.compaction_due_at is None


def postpone_compaction(conversation_id: int, seconds: float) -> None:
    rows = Conversation.objects.filter(pk=conversation_id)
    rows.update(compaction_due_at=Now() + timedelta(seconds=seconds))


def filter_unmarked(rows: QuerySet[Conversation]) -> QuerySet[Conversation]:
    """Return the rows that were not marked due since the job began.

    `mark_due` sets a time in the past, the job one in the future.
    """
    return rows.filter(compaction_due_at__gt=Now())


def renew_compaction(claim: Claim) -> None:
    held = COMPACTION_LEASE.filter_held(claim)
    COMPACTION_LEASE.renew_row(held)
    filter_unmarked(held).update(compaction_due_at=COMPACTION_LEASE.new_expiry())


def release_compaction(claim: Claim) -> None:
    COMPACTION_LEASE.release_row(COMPACTION_LEASE.filter_held(claim))


def count_failure(claim: Claim) -> bool:
    """Delay the next attempt, longer after each failure.

    Return False if the lease was lost: its new owner counts.
    """
    rows = COMPACTION_LEASE.filter_held(claim)
    failures = rows.values_list("compaction_failures", flat=True).first()
    if failures is None:
        return False
    # Users can ask again as often as they like; the back-off has an upper limit.
    failures = min(failures, MAX_FAILURES - 1)
    retry_at = Now() + BACKOFF * 2**failures
    return bool(
        rows.update(
            compaction_failures=failures + 1,
            compaction_retry_at=retry_at,
            compaction_due_at=retry_at,
        )
    )
