"""Tombstones in the admin: what was erased, by whom and why; nothing of it is left."""

from django.contrib import admin
from django.contrib.admin import DateFieldListFilter
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from ..models import Tombstone
from ..readonly import ReadOnlyAdmin, as_text, kept_of
from .events import StaffFilter

HASH_CHARS = 12


@admin.register(Tombstone)
class TombstoneAdmin(ReadOnlyAdmin):
    list_display = (
        "created_at",
        "conversation",
        "begun_at",
        "messages",
        "summaries",
        "model_calls",
        "turns",
        "username",
        "hash",
    )
    list_filter = (("created_at", DateFieldListFilter), StaffFilter)
    # What was erased, or who did it; see get_search_results.
    search_fields = ("username",)
    search_help_text = _(
        "The id of a conversation or its first eight characters, or an exact user name."
    )
    ordering = ("-id",)
    sortable_by = ()
    fields = (
        ("created_at", "username"),
        "conversation",
        "begun_at",
        ("messages", "summaries", "model_calls", "turns"),
        "sha256",
        "reason_wide",
    )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        found = kept_of(queryset, search_term)
        if found is None:
            found = queryset.filter(username=search_term.strip())
        return found, False

    @admin.display(description="SHA-256")
    def hash(self, row: Tombstone) -> str:
        return f"{row.sha256[:HASH_CHARS]}…"

    @admin.display(description=_("reason"))
    def reason_wide(self, row: Tombstone) -> SafeString:
        return as_text(row.reason)
