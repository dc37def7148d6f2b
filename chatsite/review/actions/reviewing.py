"""A reviewer's word on a conversation: up to where it was looked at, and whether it has
changed since.
"""

from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any, Self

from django.contrib import admin
from django.db import transaction
from django.db.models import Exists, F, Max, OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memory.actions import ActionError
from memory.models import Conversation, Message

from ..models import Review

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

Filters = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class State:
    """How far a conversation has come: what a reviewer of now can have seen."""

    memory_version: int
    version: int
    last_seq: int

    @classmethod
    def of(cls, conversation: Conversation) -> Self:
        version = conversation.summaries.aggregate(newest=Max("version"))["newest"]
        last = conversation.messages.aggregate(newest=Max("seq"))["newest"]
        return cls(conversation.memory_version, version or 0, last or 0)

    @classmethod
    def read(cls, text: str) -> Self:
        """From what str() gave. Raises ActionError."""
        parts = text.split(".")
        if len(parts) != 3 or not all(p.isdecimal() and len(p) < 10 for p in parts):
            raise ActionError(_("The form was not complete. Open the page again."))
        return cls(*map(int, parts))

    def __str__(self) -> str:
        return ".".join(map(str, astuple(self)))

    def has_seen(self, other: "State") -> bool:
        return all(a >= b for a, b in zip(astuple(self), astuple(other), strict=True))


@transaction.atomic
def review(
    conversation: Conversation,
    *,
    user: "AbstractBaseUser",
    note: str = "",
    seen: State | None = None,
) -> Review:
    """Mark what was `seen` as reviewed; without it, all that there is now.

    Raises ActionError when the same person has said the same of the same before.
    """
    row = Conversation.objects.select_for_update().get(pk=conversation.pk)
    now = State.of(row)
    seen = seen or now
    if not now.has_seen(seen):
        raise ActionError(_("The form was not of this conversation. Open it again."))
    latest = row.reviews.first()
    if latest and (latest.user_id, latest.note, state_of(latest)) == (
        user.pk,
        note,
        seen,
    ):
        raise ActionError(_("You have marked it already, with the same note."))
    return Review.objects.create(
        conversation=row,
        user=user,
        username=user.get_username(),
        version=seen.version,
        last_seq=seen.last_seq,
        memory_version=seen.memory_version,
        note=note,
    )


def state_of(row: Review) -> State:
    return State(row.memory_version, row.version, row.last_seq)


def is_outdated(row: Review, now: State) -> bool:
    """Whether the conversation went on, or its view changed, after the review."""
    before = state_of(row)
    return (before.memory_version, before.last_seq) != (
        now.memory_version,
        now.last_seq,
    )


class ReviewFilter(admin.SimpleListFilter):
    """Reviewed as it is now, changed since its latest review, or never reviewed."""

    title = gettext_lazy("reviewed")
    parameter_name = "reviewed"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Filters:
        return [
            ("yes", _("reviewed")),
            ("changed", _("changed since review")),
            ("no", _("not yet")),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        if self.value() not in ("yes", "changed", "no"):
            return queryset
        reviews = Review.objects.filter(conversation=OuterRef("pk")).order_by("-id")
        if self.value() == "no":
            return queryset.filter(~Exists(reviews))
        rows = queryset.annotate(
            reviewed_version=Subquery(reviews.values("memory_version")[:1]),
            reviewed_seq=Subquery(reviews.values("last_seq")[:1]),
        ).filter(reviewed_seq__isnull=False)
        newer = Message.objects.filter(
            conversation=OuterRef("pk"), seq__gt=OuterRef("reviewed_seq")
        )
        changed = ~Q(memory_version=F("reviewed_version")) | Exists(newer)
        return rows.filter(changed if self.value() == "changed" else ~changed)
