"""The queue items from the core's own tables."""

from django.db.models import F, QuerySet
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from chatsite.plugins import ReviewSource
from chatsite.review.pages import timeline_url
from chatsite.turns.models import Turn
from memory.models import Summary


def find_flagged_summaries() -> QuerySet[Summary]:
    """Return active summaries with facts that are in no message they cover."""
    rows = Summary.objects.filter(
        status=Summary.Status.ACTIVE, unsupported__isnull=False
    )
    rows = rows.annotate(number=F("version"), found_at=F("created_at"))
    return rows.order_by("-created_at", "-id")


def find_failed_turns() -> QuerySet[Turn]:
    rows = Turn.objects.filter(state__one_of=Turn.FAILING)
    rows = rows.annotate(number=F("reply_seq"), found_at=F("created_at"))
    return rows.order_by("-created_at")


SUMMARIES = ReviewSource(
    name=_("Flagged summary"),
    find=find_flagged_summaries,
    describe=lambda number: f"v{number}",
    address=lambda conversation, number, _pk: timeline_url(conversation, v=number),
)
TURNS = ReviewSource(
    name=_("Failed turn"),
    find=find_failed_turns,
    describe=lambda number: f"#{number}",
    address=lambda _conversation, _number, pk: reverse(
        "admin:chat_turn_change", args=[pk]
    ),
)
