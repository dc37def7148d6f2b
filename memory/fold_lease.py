"""Who may fold a conversation now, and when somebody should look at it again.

A fold is claimed by a lease of the database's clock, renewed while the model writes.
"""

from datetime import timedelta

from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from .models import Conversation

MAX_FAILURES = 3
# A dead process blocks nobody for longer.
LEASE = timedelta(seconds=20)
DUE_AT_ONCE = 50


def claim(conversation_id: int, owner: str, force: bool) -> bool:
    """Whether this owner may fold now. `force`: rest and failures do not matter."""
    rows = _free().filter(pk=conversation_id)
    if not force:
        rows = rows.filter(_rested())
    end = Now() + LEASE
    # Should this process die, the next look is due when its lease has ended.
    return bool(rows.update(fold_owner=owner, fold_lease_until=end, fold_due_at=end))


def _free() -> QuerySet[Conversation]:
    free = Q(fold_lease_until=None) | Q(fold_lease_until__lt=Now())
    return Conversation.objects.filter(free, deleted_at=None)


def _rested() -> Q:
    rested = Q(fold_retry_at=None) | Q(fold_retry_at__lt=Now())
    return rested & Q(fold_failures__lt=MAX_FAILURES)


def due() -> list[int]:
    """Conversations that a fold job should look at and that nobody folds."""
    rows = _free().filter(_rested(), fold_due_at__lte=Now()).order_by("fold_due_at")
    return list(rows.values_list("pk", flat=True)[:DUE_AT_ONCE])


def mark_due(conversation_id: int) -> None:
    Conversation.objects.filter(pk=conversation_id).update(fold_due_at=Now())


def stop(conversation_id: int) -> None:
    """End the fold that runs after the step it is at, which is paid for; the next turn
    marks the conversation due again."""
    rows = Conversation.objects.filter(pk=conversation_id, fold_lease_until__gte=Now())
    rows.update(fold_due_at=None)


def is_stopped(conversation: Conversation, owner: str) -> bool:
    """While a lease is held its end is the mark; without one, the fold was stopped."""
    return conversation.fold_owner == owner and conversation.fold_due_at is None


def unmarked(rows: QuerySet[Conversation]) -> QuerySet[Conversation]:
    """Those where no turn has ended since the job began: its mark is never ahead."""
    return rows.filter(fold_due_at__gt=Now())


def renew(conversation_id: int, owner: str) -> None:
    rows = Conversation.objects.filter(pk=conversation_id, fold_owner=owner)
    rows.update(fold_lease_until=Now() + LEASE)
    unmarked(rows).update(fold_due_at=Now() + LEASE)


def release(conversation_id: int, owner: str) -> None:
    rows = Conversation.objects.filter(pk=conversation_id, fold_owner=owner)
    rows.update(fold_owner="", fold_lease_until=None)
