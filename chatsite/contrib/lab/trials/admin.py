"""Trials in the admin: each leads to the request that was sent for it."""

from typing import ClassVar

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from chatsite.review.readonly import (
    ConversationPartAdmin,
    beginning_of,
    link_field,
    text_field,
    whole_json,
)

from .models import Trial


@admin.register(Trial)
class TrialAdmin(ConversationPartAdmin):
    list_display = (
        "created_at",
        "state",
        "reply",
        "model",
        "text_shown",
        "error_code",
        "in_conversation",
        "owner_name",
    )
    list_display_links = ("created_at",)
    list_filter: ClassVar = ("state", "created_at")
    texts = Trial.TEXTS
    heads = ("text",)
    select_related = ("conversation__owner", "message", "call")
    fields = (
        ("in_conversation", "reply", "sent"),
        ("state", "model", "error_shown"),
        "changes_wide",
        "words_wide",
        "text_wide",
        ("created_at", "finished_at"),
    )

    reply = link_field("message", _("reply"))
    sent = link_field("call", _("request"), lambda call: call.sha256[:12])
    text_shown = beginning_of("text", _("text"))
    changes_wide = whole_json("changes", _("changes"))
    words_wide = text_field("words", _("other words"))
    text_wide = text_field("text", _("text"))
