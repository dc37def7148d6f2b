"""Turns in the admin: how each reply came about, those that went wrong first."""

from datetime import datetime

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from chatsite.protocol.errors import explain_code
from chatsite.turns.models import FAILING_FIRST, Turn

from .. import redaction
from ..filters import SetFilter
from ..readonly import ConversationPartAdmin, format_duration, link_field, text_field


@admin.register(Turn)
class TurnAdmin(ConversationPartAdmin):
    list_display = (
        "id",
        "state",
        "error_code",
        "in_conversation",
        "owner_name",
        "question",
        "answer",
        "queued_for",
        "first_token",
        "total_time",
        "attempt",
        "created_at",
        "model",
        "request_made",
    )
    list_filter = ("state", ("error", SetFilter), "created_at")
    ordering = (FAILING_FIRST, "-id")
    texts = redaction.TURN
    target = "turn #{0.reply_seq}"
    select_related = ("conversation__owner", "user_message", "reply", "call")
    fields = (
        ("in_conversation", "state", "attempt"),
        ("question", "answer", "reply_seq"),
        ("model", "request_made"),
        ("queued_for", "first_token", "total_time"),
        "error_explained",
        "wide_text",
        "lease_until",
        ("created_at", "started_at", "finished_at"),
    )

    wide_text = text_field("text", _("text as far as it was saved"))
    question = link_field("user_message", _("question"))
    answer = link_field("reply", _("reply"))
    request_made = link_field("call", _("request"), lambda call: str(call.pk))

    @admin.display(description=_("queued"))
    def queued_for(self, row: Turn) -> str:
        return _show_duration(row.created_at, row.started_at)

    @admin.display(description=_("time to first token"))
    def first_token(self, row: Turn) -> str:
        return format_duration(row.call.first_token_ms if row.call else None)

    @admin.display(description=_("total"))
    def total_time(self, row: Turn) -> str:
        return _show_duration(row.created_at, row.finished_at)

    @admin.display(description=_("error"))
    def error_explained(self, row: Turn) -> str:
        if not row.error:
            return "-"
        shown = redaction.show_error(row)
        # An unknown code, such as an imported one, is in its explanation, too.
        return f"{shown}: {explain_code(row.error)}" if shown == row.error else shown


def _show_duration(start: datetime, end: datetime | None) -> str:
    """Unknown where the end is before the start: the row is a copy of an older one."""
    took = (end - start).total_seconds() if end else -1
    return format_duration(None if took < 0 else took * 1000)
