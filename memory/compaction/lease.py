"""Who may compact a conversation now, and when somebody should look at it again.

A compaction is claimed by a lease of the database's clock, renewed while the model
writes.
"""

from datetime import timedelta

from django.db.models import Case, F, Q, QuerySet, When, Window
from django.db.models.functions import Least, Now, RowNumber

from memory.leases import Lease
from memory.models import Conversation

MAX_FAILURES = 3
BACKOFF = timedelta(seconds=30)
# A dead process blocks nobody for longer.
LEASE = timedelta(seconds=20)
DUE_AT_ONCE = 50
COMPACTION = Lease(lambda: LEASE, "compaction_lease_until", "compaction_owner")


def claim(conversation_id: int, owner: str, force: bool) -> bool:
    """Whether this owner may compact now. `force`: rest and failures do not matter."""
    rows = Conversation.objects.filter(pk=conversation_id, deleted_at=None)
    if not force:
        rows = rows.filter(_rested())
    # An owner who is still there has not given the lease back: that compaction died,
    # and what it paid for is lost. Uncounted, it would die and pay again without end.
    died = Case(When(compaction_owner="", then=0), default=1)
    return COMPACTION.claim(
        rows,
        owner,
        # Should this process die, the next look is due when its lease has ended.
        compaction_due_at=COMPACTION.end(),
        compaction_failures=F("compaction_failures") + died,
    )


def is_held(conversation_id: int) -> bool:
    """Whether some process compacts it just now."""
    return Conversation.objects.filter(COMPACTION.alive(), pk=conversation_id).exists()


def _rested() -> Q:
    rested = Q(compaction_retry_at=None) | Q(compaction_retry_at__lt=Now())
    return rested & Q(compaction_failures__lt=MAX_FAILURES)


def due(limit: int = DUE_AT_ONCE) -> list[int]:
    """Conversations that a compaction job should look at and that nobody compacts: the
    first of each person, then the second, so that a large import keeps no other one
    waiting."""
    place = Window(RowNumber(), partition_by="owner_id", order_by="compaction_due_at")
    rows = Conversation.objects.filter(COMPACTION.free(), _rested(), deleted_at=None)
    waiting = rows.filter(compaction_due_at__lte=Now()).annotate(place=place)
    ordered = waiting.order_by("place", "compaction_due_at")
    return list(ordered.values_list("pk", flat=True)[:limit])


def mark_due(conversation_id: int) -> None:
    """Let the compaction job look again, after a new message or what a person did.

    A job that has given up tries once more when its rest is over.
    """
    Conversation.objects.filter(pk=conversation_id).update(
        compaction_due_at=Now(),
        compaction_failures=Least("compaction_failures", MAX_FAILURES - 1),
    )


def stop(conversation_id: int) -> None:
    """End the compaction that runs after the step it is at, which is paid for; the next
    turn marks the conversation due again."""
    rows = Conversation.objects.filter(COMPACTION.alive(), pk=conversation_id)
    rows.update(compaction_due_at=None)


def is_stopped(conversation: Conversation, owner: str) -> bool:
    """While a lease is held its end is the mark; without one, the compaction was
    stopped."""
    return (
        conversation.compaction_owner == owner
        and conversation.compaction_due_at is None
    )


def postpone(conversation_id: int, seconds: float) -> None:
    rows = Conversation.objects.filter(pk=conversation_id)
    rows.update(compaction_due_at=Now() + timedelta(seconds=seconds))


def unmarked(rows: QuerySet[Conversation]) -> QuerySet[Conversation]:
    """Those where no turn has ended since the job began: its mark is never ahead."""
    return rows.filter(compaction_due_at__gt=Now())


def renew(conversation_id: int, owner: str) -> None:
    held = _held(conversation_id, owner)
    COMPACTION.renew(held)
    unmarked(held).update(compaction_due_at=COMPACTION.end())


def release(conversation_id: int, owner: str) -> None:
    COMPACTION.release(_held(conversation_id, owner))


def _held(conversation_id: int, owner: str) -> QuerySet[Conversation]:
    return Conversation.objects.filter(COMPACTION.held_by(owner), pk=conversation_id)


def count_failure(conversation_id: int, owner: str) -> bool:
    """Let the next try wait, longer after each failure. False: the lease was lost, and
    who has it keeps the books."""
    rows = _held(conversation_id, owner)
    failures = rows.values_list("compaction_failures", flat=True).first()
    if failures is None:
        return False
    # People can ask again as often as they like; the rest has an upper limit.
    failures = min(failures, MAX_FAILURES - 1)
    retry_at = Now() + BACKOFF * 2**failures
    return bool(
        rows.update(
            compaction_failures=failures + 1,
            compaction_retry_at=retry_at,
            compaction_due_at=retry_at,
        )
    )
