"""Turns in the admin: how each reply came about. Read only, as all of it."""

from django.contrib import admin
from django.contrib.admin import DateFieldListFilter, EmptyFieldListFilter
from django.utils.safestring import SafeString

from memory.readonly_admin import ConversationPartAdmin, as_text, link_to

from .errors import explain
from .models import Turn

admin.site.site_header = admin.site.site_title = "Windowpane"
admin.site.index_title = "What people saw, what the model saw"


@admin.register(Turn)
class TurnAdmin(ConversationPartAdmin):
    list_display = (
        "id",
        "in_conversation",
        "owner_name",
        "question",
        "reply_seq",
        "state",
        "attempt",
        "model",
        "error",
        "created_at",
        "started_at",
        "finished_at",
    )
    list_filter = (
        "state",
        ("error", EmptyFieldListFilter),
        ("created_at", DateFieldListFilter),
    )
    list_select_related = ("conversation__owner", "user_message")
    ordering = ("-id",)
    fields = (
        ("conversation", "state", "attempt"),
        ("user_message", "reply", "reply_seq"),
        ("model", "call"),
        "wide_text",
        "explanation",
        ("owner", "lease_until", "cancel_requested_at"),
        ("created_at", "started_at", "finished_at"),
    )

    @admin.display(description="question")
    def question(self, row: Turn) -> SafeString:
        return link_to(row.user_message, f"#{row.user_message.seq}")

    @admin.display(description="text")
    def wide_text(self, row: Turn) -> SafeString:
        return as_text(row.text)

    @admin.display(description="error")
    def explanation(self, row: Turn) -> str:
        return f"{row.error}: {explain(row.error)}" if row.error else "-"
