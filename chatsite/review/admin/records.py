"""Records of the review app in the admin: the access log, reviews and tombstones.

They cannot be added, changed or deleted there.
"""

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.db.models import Q, QuerySet
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from memory.models import Conversation

from .. import access_log
from ..filters import StaffFilter
from ..models import AccessEvent, Review, Tombstone
from ..readonly import (
    ConversationPartAdmin,
    ReadOnlyAdmin,
    as_text,
    beginning_of,
    link_to_list,
    text_field,
    uuid_span,
)

HASH_CHARS = 12


class RecordAdmin(ReadOnlyAdmin):
    """Rows that outlive a conversation: they know its id and the names of people."""

    # See search_rows.
    search_fields = ("username",)
    search_help_text = _(
        "The id of a conversation or its first eight characters, or an exact user name."
    )
    ordering = ("-id",)
    sortable_by = ()

    def search_rows(self, rows: QuerySet, term: str) -> QuerySet:
        span = uuid_span(term)
        found = rows.filter(conversation__range=span) if span else rows.none()
        return found if found.exists() else self.find_by_name(rows, term)

    def find_by_name(self, rows: QuerySet, name: str) -> QuerySet:
        return rows.filter(username=name)


@admin.register(AccessEvent)
class AccessEventAdmin(RecordAdmin):
    list_display = (
        "created_at",
        "username",
        "action",
        "target_shown",
        "in_conversation",
        "owner",
        "address",
    )
    list_filter = ("action", "created_at", StaffFilter)
    list_select_related = ("owner",)
    fields = (
        "created_at",
        ("username", "user"),
        ("action", "target_shown"),
        ("of_conversation", "owner"),
        "address",
    )

    def find_by_name(self, rows: QuerySet, name: str) -> QuerySet:
        """Return rows by or about this user."""
        people = get_user_model().objects.filter(username=name)
        owners = list(people.values_list("pk", flat=True))
        return rows.filter(Q(username=name) | Q(owner__in=owners))

    @admin.display(description=_("what"))
    def target_shown(self, row: AccessEvent) -> str:
        return access_log.describe_target(row.target)

    @admin.display(description=_("conversation"))
    def in_conversation(self, row: AccessEvent) -> SafeString | str:
        return self._link(row, str(row.conversation)[:8])

    @admin.display(description=_("conversation"))
    def of_conversation(self, row: AccessEvent) -> SafeString | str:
        return self._link(row, str(row.conversation))

    def _link(self, row: AccessEvent, name: str) -> SafeString | str:
        """Return a link to the conversation; if it was erased, the list is empty."""
        if not row.conversation:
            return "–"
        return link_to_list(Conversation, name, q=str(row.conversation))


@admin.register(Review)
class ReviewAdmin(ConversationPartAdmin):
    """Written by staff actions only; the notes are for staff who may read."""

    list_display = (
        "created_at",
        "in_conversation",
        "owner_name",
        "username",
        "up_to",
        "note_shown",
    )
    list_filter = ("created_at", StaffFilter)
    texts = ("note",)
    heads = ("note",)
    ordering = ("-id",)
    sortable_by = ()
    fields = (
        "created_at",
        ("in_conversation", "owner_name"),
        "username",
        "up_to",
        "note_wide",
    )

    note_shown = beginning_of("note", _("note"))
    note_wide = text_field("note", _("note"))

    @admin.display(description=_("up to"))
    def up_to(self, row: Review) -> str:
        return f"#{row.last_seq}, v{row.version}"


@admin.register(Tombstone)
class TombstoneAdmin(RecordAdmin):
    list_display = (
        "created_at",
        "conversation",
        "account",
        "begun_at",
        "messages",
        "summaries",
        "model_calls",
        "turns",
        "username",
        "short_hash",
    )
    list_filter = ("created_at", StaffFilter)
    fields = (
        ("created_at", "username"),
        ("conversation", "account"),
        "begun_at",
        ("conversations", "messages", "summaries", "model_calls", "turns"),
        "sha256",
        "reason_wide",
    )

    @admin.display(description="SHA-256")
    def short_hash(self, row: Tombstone) -> str:
        return f"{row.sha256[:HASH_CHARS]}…"

    @admin.display(description=_("reason"))
    def reason_wide(self, row: Tombstone) -> SafeString:
        return as_text(row.reason)
