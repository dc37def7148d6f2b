"""Bad feedback, as staff's review queue finds it."""

from django.db.models import F, QuerySet
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from chatsite.plugins import ReviewSource

from .models import NEWEST, Feedback


def find_bad_feedback() -> QuerySet[Feedback]:
    rows = Feedback.objects.filter(verdict=Feedback.Verdict.BAD)
    rows = rows.annotate(number=F("message__seq"), found_at=F("updated_at"))
    return rows.order_by(*NEWEST)


BAD_FEEDBACK = ReviewSource(
    name=_("Bad feedback"),
    find=find_bad_feedback,
    describe=lambda number: f"#{number}",
    address=lambda conversation, number, _pk: reverse(
        "admin:review-request", args=[conversation, number]
    ),
)
