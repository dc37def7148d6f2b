"""Fill the queue from its source tables when staff look at it.

So turns and feedback have no extra cost.
"""

from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from chatsite import plugins

from .models import QueueItem

# The number of newest rows of each kind that are read.
MOST = 1_000

# The key of its conversation, its number, and when.
Found = list[Any]


def refresh_queue() -> None:
    """Add new items, reopen those with a new reason, and drop obsolete ones.

    An item that was not begun is obsolete if its reason is gone: the feedback was
    withdrawn, the reply came at a retry, the summary was replaced.
    """
    for kind, source in plugins.sources[plugins.ReviewSource].items():
        if found := _find_new(kind, source):
            _keep_found(kind, found)
        _drop_gone(kind, source)


def _find_new(kind: str, source: plugins.ReviewSource) -> dict[int, Found]:
    """Return rows, by their keys, that are not in the queue as they are now.

    A retry that failed has another number, feedback that was given again another time.
    """
    newest = source.find().filter(conversation__temporary_until=None)
    rows = source.find().order_by().filter(pk__in=newest.values("pk")[:MOST])
    known = QueueItem.objects.filter(
        kind=kind,
        source=OuterRef("pk"),
        number=OuterRef("number"),
        found_at=OuterRef("found_at"),
    )
    new = rows.exclude(Exists(known))
    columns = ("pk", "conversation_id", "number", "found_at")
    return {pk: values for pk, *values in new.values_list(*columns)}


@transaction.atomic
def _keep_found(kind: str, found: dict[int, Found]) -> None:
    # In the order in which staff who change several items lock them.
    known = QueueItem.objects.filter(kind=kind, source__in=found).order_by("pk")
    items = list(known.select_for_update().defer(*QueueItem.TEXTS))
    for item in items:
        _conversation, item.number, item.found_at = found.pop(item.source)
        item.changed_at = timezone.now()
        if item.state == QueueItem.State.DONE:
            item.state = QueueItem.State.OPEN
    names = ("number", "found_at", "state", "changed_at")
    QueueItem.objects.bulk_update(items, names, batch_size=100)
    made = [
        QueueItem(
            conversation_id=conversation,
            kind=kind,
            source=pk,
            number=number,
            found_at=found_at,
        )
        for pk, (conversation, number, found_at) in found.items()
    ]
    # Another one of the staff may have opened the list at the same moment.
    QueueItem.objects.bulk_create(made, ignore_conflicts=True)


def _drop_gone(kind: str, source: plugins.ReviewSource) -> None:
    begun_by_no_one = {"state": QueueItem.State.OPEN, "assignee": None, "note": ""}
    items = QueueItem.objects.filter(kind=kind, **begun_by_no_one)
    newest = items.order_by("-found_at", "-id").values("pk")[:MOST]
    found = source.find().order_by().filter(pk=OuterRef("source"))
    gone = QueueItem.objects.filter(pk__in=newest).exclude(Exists(found))
    if pks := list(gone.order_by().values_list("pk", flat=True)):
        with transaction.atomic():
            items.filter(pk__in=pks).delete()
