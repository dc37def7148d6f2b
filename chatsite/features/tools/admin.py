"""Calls of tools in the admin: what ran, how it ended, and who allowed it."""

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from chatsite.review.filters import SetFilter
from chatsite.review.readonly import (
    ConversationPartAdmin,
    beginning_of,
    link_field,
    text_field,
    whole_json,
)

from .models import ToolCall


@admin.register(ToolCall)
class ToolCallAdmin(ConversationPartAdmin):
    list_display = (
        *("id", "name_shown", "outcome_shown", "error_code"),
        *("in_conversation", "owner_name"),
        *("asked_in", "allowed", "answered_by", "answered_at", "created_at"),
    )
    list_filter = (*("state", "allowed", ("error", SetFilter), "created_at"),)
    ordering = ("-id",)
    texts = ToolCall.TEXTS
    heads = ("name",)
    select_related = (
        *("conversation__owner", "request", "result", "late_result", "answered_by"),
    )
    fields = (
        ("in_conversation", "outcome_shown", "error_code"),
        ("wide_name", "asked_in"),
        ("answer", "late_answer"),
        "wide_arguments",
        ("allowed", "answered_by", "answered_at", "expires_at"),
        "wide_reason",
        "deadline_at",
        ("created_at", "started_at", "finished_at"),
    )

    name_shown = beginning_of("name", _("tool"))
    wide_name = text_field("name", _("tool"))
    wide_arguments = whole_json("arguments", _("arguments"))
    wide_reason = text_field("reason", _("reason"))
    asked_in = link_field("request", _("asked in"))
    answer = link_field("result", _("result"))
    late_answer = link_field("late_result", _("late result"))

    @admin.display(description=_("state"), ordering="state")
    def outcome_shown(self, row: ToolCall) -> str:
        return row.outcome_name
