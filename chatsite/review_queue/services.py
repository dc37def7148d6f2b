"""Fills the queue from the tables it is about, when staff look at it: no turn and no
feedback pays for it.
"""

from django.db import transaction
from django.db.models import Exists, OuterRef

from chatsite import hooks

from .models import QueueItem

# Of each kind, the newest ones are looked at.
MOST = 1_000


def refresh_queue() -> None:
    """Add what is new, and drop what no one has begun and no longer has a reason: the
    feedback was taken back, the reply came at a retry, the summary was replaced."""
    for kind, source in hooks.review_sources.items():
        _add_found(kind, source)
        _drop_gone(kind, source)


def _add_found(kind: str, source: hooks.ReviewSource) -> None:
    rows = source.find()
    rows = rows.filter(conversation__temporary_until=None)
    known = QueueItem.objects.filter(kind=kind, source=OuterRef("pk"))
    newest = rows.values("pk")[:MOST]
    new = source.find().order_by().filter(pk__in=newest).exclude(Exists(known))
    columns = ("conversation_id", "pk", "number", "found_at")
    made = [
        QueueItem(
            conversation_id=conversation,
            kind=kind,
            source=pk,
            number=number,
            found_at=found_at,
        )
        for conversation, pk, number, found_at in new.values_list(*columns)
    ]
    if made:
        # Another one of the staff may have opened the list at the same moment.
        QueueItem.objects.bulk_create(made, ignore_conflicts=True)


def _drop_gone(kind: str, source: hooks.ReviewSource) -> None:
    begun_by_no_one = {"state": QueueItem.State.OPEN, "assignee": None, "note": ""}
    items = QueueItem.objects.filter(kind=kind, **begun_by_no_one)
    newest = items.order_by("-found_at", "-id").values("pk")[:MOST]
    found = source.find().order_by().filter(pk=OuterRef("source"))
    gone = QueueItem.objects.filter(pk__in=newest).exclude(Exists(found))
    if pks := list(gone.order_by().values_list("pk", flat=True)):
        with transaction.atomic():
            items.filter(pk__in=pks).delete()
