"""Turns in the admin: how each reply came about. Read only, as all of it but one
number: how many tokens a day somebody may use.
"""

from typing import Any

from django.contrib import admin
from django.contrib.admin import DateFieldListFilter, EmptyFieldListFilter
from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString

from memory.readonly_admin import ConversationPartAdmin, as_text, link_to

from . import limits
from .errors import explain
from .models import Allowance, Turn

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


@admin.register(Allowance)
class AllowanceAdmin(admin.ModelAdmin):
    """What people have used today; `tokens_per_day` alone can be changed."""

    list_display = ("user", "used_today", "budget", "tokens_per_day")
    list_filter = (("tokens_per_day", EmptyFieldListFilter),)
    list_select_related = ("user",)
    list_per_page = 50
    show_full_result_count = False
    ordering = ("-day", "-tokens_used")
    search_fields = ("user__username",)
    search_help_text = "Part of a user name."
    autocomplete_fields = ("user",)
    fields = ("user", "tokens_per_day", "budget", "used_today")

    def get_readonly_fields(
        self, request: HttpRequest, obj: Allowance | None = None
    ) -> tuple[str, ...]:
        shown = ("budget", "used_today")
        return ("user", *shown) if obj else shown

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # It would give back what was used.
        return False

    @admin.display(description="used today", ordering="tokens_used")
    def used_today(self, row: Allowance) -> str:
        return f"{limits.used_on(row, timezone.localdate()):,}"

    @admin.display(description="tokens per day")
    def budget(self, row: Allowance) -> str:
        return f"{limits.budget_of(row):,}" if limits.budget_of(row) else "no limit"
