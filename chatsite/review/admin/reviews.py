"""Reviews in the admin: what somebody looked at, up to where, and what they noted."""

from django.contrib import admin
from django.contrib.admin import DateFieldListFilter
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from .. import redaction
from ..models import Review
from ..readonly import ConversationPartAdmin, as_text
from .events import StaffFilter


@admin.register(Review)
class ReviewAdmin(ConversationPartAdmin):
    """Written by the acts alone; the notes are for those who may read."""

    list_display = (
        "created_at",
        "in_conversation",
        "owner_name",
        "username",
        "up_to",
        "note_shown",
    )
    list_filter = (("created_at", DateFieldListFilter), StaffFilter)
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

    def target_of(self, row: Review) -> str:
        return f"review {row.pk}"

    @admin.display(description=_("up to"))
    def up_to(self, row: Review) -> str:
        return f"#{row.last_seq}, v{row.version}"

    @admin.display(description=_("note"))
    def note_shown(self, row: Review) -> str:
        return redaction.beginning(row, "note")

    @admin.display(description=_("note"))
    def note_wide(self, row: Review) -> SafeString:
        return as_text(redaction.read(row, "note"))
