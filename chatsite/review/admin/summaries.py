"""Summaries in the admin: every version, what set it off and what is doubtful about it.

The timeline of its conversation shows what it was made of.
"""

from typing import Any

from django.contrib import admin
from django.db.models import Exists, OuterRef, Prefetch, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memory.models import Summary

from .. import filters, labels, redaction
from ..pages import timeline_link
from ..readonly import ConversationPartAdmin, link_to, text_field, whole_json

RANGES = Summary.objects.only("first_seq", "last_seq", "version")


@admin.register(Summary)
class SummaryAdmin(ConversationPartAdmin):
    list_display = (
        "version_link",
        "in_conversation",
        "owner_name",
        "level",
        labels.format_span,
        labels.count_compacted,
        labels.format_tokens,
        labels.name_status,
        labels.list_flags,
        labels.describe_trigger,
        "model",
        labels.name_author,
        "created_at",
    )
    list_display_links = None
    list_filter = (
        "created_at",
        filters.TriggerFilter,
        filters.AuthorFilter,
        filters.StatusFilter,
        filters.FlagFilter,
        filters.LevelFilter,
        filters.PresetFilter,
    )
    # Two sorts have an index; another would sort all there are.
    sortable_by = ("created_at",)
    ordering = ("-created_at", "-id")
    texts = redaction.SUMMARY
    target = "version {0.version}"
    select_related = ("conversation__owner", "author")
    fields = (
        ("in_conversation", "version", labels.name_status),
        (labels.format_span, labels.count_compacted, "level", "generation"),
        (labels.describe_trigger, "preset", labels.name_author),
        ("tokens_before", "tokens_after"),
        ("model", "tokens_in", "tokens_out", "ms"),
        "error_code",
        labels.list_flags,
        "wide_text",
        "wide_structured",
        "wide_flags",
        "made_of",
        "signature",
        "created_at",
    )

    class Media:
        css = {"all": ["css/review-timeline.css"]}

    wide_text = text_field("text", gettext_lazy("text"))
    wide_structured = whole_json("structured", gettext_lazy("structured"))
    wide_flags = whole_json("flags", gettext_lazy("found by the checks"))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Summary]:
        before = Summary.objects.filter(
            conversation=OuterRef("conversation"),
            status=Summary.Status.ACTIVE,
            last_seq=OuterRef("first_seq") - 1,
        )
        rows = super().get_queryset(request).annotate(follows=Exists(before))
        return rows.prefetch_related(Prefetch("folded_from", RANGES))

    @admin.display(description=gettext_lazy("version"))
    def version_link(self, row: Summary) -> SafeString:
        return link_to(row, f"v{row.version}")

    @admin.display(description=gettext_lazy("conversation"))
    def in_conversation(self, row: Summary) -> SafeString:
        name = str(row.conversation.uuid)[:8]
        return timeline_link(row.conversation_id, name, v=row.version)

    @admin.display(description=gettext_lazy("made of"))
    def made_of(self, row: Summary) -> SafeString | str:
        links = [(link_to(each, str(each)),) for each in row.folded_from.all()]
        return format_html_join(", ", "{}", links) or _("messages alone")

    def find_sections(self, request: HttpRequest, obj: Summary) -> dict[str, Any]:
        calls = obj.model_calls.defer(*redaction.CALL).order_by("pk")
        return {"calls": calls, "summary": obj}
