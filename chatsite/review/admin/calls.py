"""Requests to models in the admin, and the prompts that were sent with them."""

from typing import Any

from django.contrib import admin
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from chatsite.llm import pricing
from memory.models import ModelCall, Prompt
from memory.models.call import billed_tokens

from .. import labels, redaction
from ..filters import SetFilter
from ..readonly import (
    ConversationPartAdmin,
    ReadOnlyAdmin,
    beginning_of,
    duration_field,
    link_field,
    text_field,
    whole_json,
)
from ..rights import rights_of
from ..timeline import request_inspector


@admin.register(ModelCall)
class ModelCallAdmin(ConversationPartAdmin):
    list_display = (
        "created_at",
        "purpose",
        "error_code",
        "in_conversation",
        "owner_name",
        "model",
        "tokens_in",
        "estimate_error",
        "cached_share",
        "tokens_out",
        "cost_shown",
        "first_word",
        "in_all",
        "attempts",
    )
    list_filter = ("purpose", ("error", SetFilter), "created_at")
    ordering = ("-id",)
    texts = redaction.CALL
    target = "call {0.pk}"
    select_related = ("conversation__owner", "message", "summary")
    fields = (
        ("in_conversation", "purpose"),
        ("made_message", "made_summary"),
        "model",
        ("tokens_estimated", "tokens_input", "estimate_error"),
        ("tokens_cached", "cached_share", "tokens_output", "cost_shown"),
        ("first_token_ms", "total_ms", "attempts"),
        "error_shown",
        "sha256",
        "wide_refs",
        "created_at",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        return super().get_queryset(request).annotate(**billed_tokens())

    def search_rows(self, rows: QuerySet, term: str) -> QuerySet:
        found = super().search_rows(rows, term)
        return found if found[:1] else rows.filter(model=term)

    @admin.display(description=_("tokens in"), ordering="tokens_estimated")
    def tokens_in(self, row: ModelCall) -> str:
        """Tokens of the request as estimated, and as reported."""
        estimated = f"≈{row.tokens_estimated:,}"
        if row.tokens_input is None:
            return estimated
        return f"{estimated} → {row.tokens_input:,}".replace(" ", "\u00a0")

    @admin.display(description=_("out"), ordering="tokens_output")
    def tokens_out(self, row: ModelCall) -> str:
        return "–" if row.tokens_output is None else f"{row.tokens_output:,}"

    first_word = duration_field("first_token_ms", _("time to first token"))
    in_all = duration_field("total_ms", _("total"))

    @admin.display(description=_("estimate error"))
    def estimate_error(self, row: ModelCall) -> str:
        return row.estimate_error or "–"

    @admin.display(description=_("from the cache"))
    def cached_share(self, row: ModelCall) -> str:
        if row.tokens_cached is None or not row.tokens_input:
            return "–"
        return f"{row.tokens_cached / row.tokens_input:.0%}"

    @admin.display(description=_("cost"))
    def cost_shown(self, row: ModelCall) -> str:
        spent = (row.billed_read, row.billed_written, row.billed_cached)
        spent += (row.billed_extra,)
        return labels.format_cost(pricing.price_tokens(row.model, *spent))

    made_message = link_field("message", _("message"))
    made_summary = link_field("summary", _("summary"), str)
    wide_refs = whole_json("refs", _("sent, by reference"))

    def find_sections(self, request: HttpRequest, obj: ModelCall) -> dict[str, Any]:
        rights = rights_of(request.user)
        if obj.purpose not in ModelCall.COMPOSED or not rights.content:
            return {}
        return {
            "sent": request_inspector.build_sent(obj.conversation, obj, rights),
            "rights": rights,
        }


@admin.register(Prompt)
class PromptAdmin(ReadOnlyAdmin):
    """System prompts and the wording around summaries, as they were sent."""

    list_display = ("__str__", "beginning")
    fields = ("sha256", "wide_text")
    texts = redaction.PROMPT
    target = "prompt {0}"
    heads = ("text",)

    beginning = beginning_of("text", _("text"))
    wide_text = text_field("text", _("text"))

    def without_temporary(self, rows: QuerySet) -> QuerySet:
        """Return the requests that were sent in any other conversation."""
        return rows.filter(
            Exists(redaction.select_lasting().filter(prompts=OuterRef("pk")).order_by())
        )
