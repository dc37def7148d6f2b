"""The admin as an auditor's desk: everything can be read, nothing can be changed."""

from typing import Any

from django.contrib import admin
from django.contrib.admin import DateFieldListFilter, EmptyFieldListFilter
from django.core.paginator import Page, Paginator
from django.db.models import Count, IntegerField, Model, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce, Left
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from . import context, folding
from .models import Conversation, Message, ModelCall, Prompt, Summary
from .readonly_admin import (
    SEARCH_HELP,
    ConversationPartAdmin,
    FoldingFilter,
    ReadOnlyAdmin,
    TriggerFilter,
    as_json,
    as_text,
    link_to_list,
)

PAGE_MESSAGES = 100
BEGINNING = 80


def _count(model: type[Model], **lookups: Any) -> Coalesce:
    """The number of a conversation's rows, without joining them all."""
    rows = model.objects.filter(conversation=OuterRef("pk"), **lookups).order_by()
    counts = rows.values("conversation").annotate(count=Count("pk")).values("count")
    return Coalesce(Subquery(counts), 0, output_field=IntegerField())


@admin.register(Conversation)
class ConversationAdmin(ReadOnlyAdmin):
    list_display = (
        "uuid",
        "title",
        "owner",
        "preset",
        "messages",
        "summaries",
        "folding",
        "updated_at",
    )
    list_filter = (
        FoldingFilter,
        ("archived_at", EmptyFieldListFilter),
        ("created_at", DateFieldListFilter),
    )
    list_select_related = ("owner",)
    search_fields = ("owner__username",)
    search_help_text = SEARCH_HELP
    conversation_id_field = "uuid"
    fields = (
        "uuid",
        ("title", "title_set_by"),
        "owner",
        "model",
        "wide_system_prompt",
        "wide_policy",
        "parts",
        "folding",
        ("fold_failures", "fold_retry_at"),
        ("memory_version", "next_seq", "token_ratio"),
        ("pinned_at", "archived_at"),
        ("created_at", "updated_at"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Conversation]:
        rows = super().get_queryset(request)
        return rows.annotate(
            message_count=_count(Message), summary_count=_count(Summary)
        )

    @admin.display(description="preset")
    def preset(self, row: Conversation) -> str:
        if row.policy_error:
            return "not valid"
        return row.policy.get("preset", "")

    @admin.display(description="messages", ordering="message_count")
    def messages(self, row: Conversation) -> SafeString:
        return link_to_list(Message, row.message_count, conversation__id__exact=row.pk)

    @admin.display(description="summaries", ordering="summary_count")
    def summaries(self, row: Conversation) -> SafeString:
        return link_to_list(Summary, row.summary_count, conversation__id__exact=row.pk)

    @admin.display(description="folding")
    def folding(self, row: Conversation) -> str:
        if not row.fold_failures:
            return "working"
        if folding.may_fold(row):
            return f"failed {row.fold_failures} times, will try again"
        return f"stopped after {row.fold_failures} failures"

    @admin.display(description="system prompt")
    def wide_system_prompt(self, row: Conversation) -> SafeString:
        return as_text(context.system_prompt(row))

    @admin.display(description="policy")
    def wide_policy(self, row: Conversation) -> SafeString:
        stored = as_json(row.policy)
        if not row.policy_error:
            return stored
        return format_html(
            "{}<p>Not valid, so the default is in force: {}</p>",
            stored,
            row.policy_error,
        )

    @admin.display(description="contents")
    def parts(self, row: Conversation) -> SafeString:
        only = {"conversation__id__exact": row.pk}
        return format_html(
            "{} · {} · {}",
            link_to_list(Message, f"{row.message_count} messages", **only),
            link_to_list(Summary, f"{row.summary_count} summaries", **only),
            link_to_list(ModelCall, "model calls", **only),
        )


@admin.register(Message)
class MessageAdmin(ConversationPartAdmin):
    list_display = (
        "seq",
        "in_conversation",
        "owner_name",
        "role",
        "beginning",
        "tokens",
        "pinned_at",
        "excluded_at",
        "superseded_at",
        "created_at",
    )
    list_filter = (
        "role",
        ("pinned_at", EmptyFieldListFilter),
        ("excluded_at", EmptyFieldListFilter),
        ("superseded_at", EmptyFieldListFilter),
        ("created_at", DateFieldListFilter),
    )
    ordering = ("-id",)
    fields = (
        ("conversation", "seq"),
        ("role", "tokens"),
        "wide_text",
        "wide_tool_calls",
        ("tool_call_id", "client_id"),
        ("pinned_at", "excluded_at", "superseded_at"),
        "created_at",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Message]:
        # Fifty whole replies are too much for a list that shows their beginnings.
        rows = super().get_queryset(request).defer("text", "tool_calls")
        return rows.annotate(head=Left("text", BEGINNING + 1))

    @admin.display(description="text")
    def beginning(self, row: Message) -> str:
        return row.head if len(row.head) <= BEGINNING else row.head[:-1] + "…"

    @admin.display(description="text")
    def wide_text(self, row: Message) -> SafeString:
        return as_text(row.text)

    @admin.display(description="tool calls")
    def wide_tool_calls(self, row: Message) -> SafeString:
        return as_json(row.tool_calls)


@admin.register(Summary)
class SummaryAdmin(ConversationPartAdmin):
    list_display = (
        "version",
        "in_conversation",
        "owner_name",
        "covers",
        "status",
        "tokens",
        "trigger_kind",
        "model",
        "error",
        "level",
        "generation",
        "created_at",
    )
    list_filter = (
        "status",
        TriggerFilter,
        ("author", EmptyFieldListFilter),
        ("created_at", DateFieldListFilter),
    )
    search_fields = ("conversation__owner__username", "=model")
    search_help_text = "The id of a conversation, a model, or part of a user name."
    ordering = ("-id",)
    fields = (
        ("conversation", "version", "status"),
        ("covers", "level", "generation"),
        ("made_because", "author"),
        ("tokens_before", "tokens_after"),
        ("model", "tokens_in", "tokens_out", "ms"),
        "error",
        "wide_text",
        "wide_structured",
        "doubts",
        ("policy_hash", "prompt_hash"),
        "created_at",
    )

    @admin.display(description="messages", ordering="first_seq")
    def covers(self, row: Summary) -> str:
        return f"#{row.first_seq}–#{row.last_seq}"

    @admin.display(description="tokens", ordering="tokens_before")
    def tokens(self, row: Summary) -> str:
        return f"{row.tokens_before:,}\u00a0→\u00a0{row.tokens_after:,}"

    @admin.display(description="trigger")
    def trigger_kind(self, row: Summary) -> str:
        return str(row.trigger.get("kind", "")).replace("_", " ")

    @admin.display(description="trigger")
    def made_because(self, row: Summary) -> str:
        value, limit = row.trigger.get("value"), row.trigger.get("limit")
        reached = f": {value} (limit {limit})" if limit else ""
        return self.trigger_kind(row) + reached

    @admin.display(description="text")
    def wide_text(self, row: Summary) -> SafeString:
        return as_text(row.text)

    @admin.display(description="structured")
    def wide_structured(self, row: Summary) -> SafeString:
        return as_json(row.structured)

    @admin.display(description="not found in its messages")
    def doubts(self, row: Summary) -> str:
        return ", ".join(row.flags.get("unsupported", [])) or "-"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Summary]:
        return super().get_queryset(request).defer("text", "structured", "flags")

    def sections(self, request: HttpRequest, obj: Summary) -> dict[str, Any]:
        sources = list(obj.folded_from.order_by("first_seq"))
        sections = {
            "sources": sources,
            "successors": obj.folded_into.order_by("version"),
            "neighbours": _neighbours(obj),
        }
        if request.user.has_perm("memory.view_message"):
            sections["messages_folded"] = _folded(request, obj, sources)
        if request.user.has_perm("memory.view_modelcall"):
            sections["calls"] = obj.model_calls.order_by("pk")
        return sections


def _neighbours(summary: Summary) -> dict[str, Summary | None]:
    """The versions before and after this one, whatever became of them."""
    rows = Summary.objects.filter(conversation=summary.conversation_id)
    older, newer = (
        rows.filter(version__lt=summary.version).order_by("-version"),
        rows.filter(version__gt=summary.version).order_by("version"),
    )
    return {"previous": older.first(), "next": newer.first()}


def _folded(
    request: HttpRequest, summary: Summary, sources: list[Summary]
) -> dict[str, Any]:
    """The messages this version was the first to stand for, or with ?all=1 each one."""
    span = (summary.first_seq, summary.last_seq)
    covered = Message.objects.filter(
        conversation=summary.conversation_id, seq__range=span
    )
    fresh = covered
    for source in sources:
        fresh = fresh.exclude(seq__range=(source.first_seq, source.last_seq))
    everything = "all" in request.GET
    rows = covered if everything else fresh
    return {
        "page": _page(request, rows.order_by("seq")),
        "everything": everything,
        "has_more": bool(sources),
    }


def _page(request: HttpRequest, rows: QuerySet[Message]) -> Page:
    return Paginator(rows, PAGE_MESSAGES).get_page(request.GET.get("page"))


@admin.register(ModelCall)
class ModelCallAdmin(ConversationPartAdmin):
    list_display = (
        "created_at",
        "purpose",
        "in_conversation",
        "owner_name",
        "model",
        "tokens_estimated",
        "tokens_input",
        "tokens_cached",
        "tokens_output",
        "first_token_ms",
        "total_ms",
        "attempts",
        "error",
    )
    list_filter = (
        "purpose",
        ("error", EmptyFieldListFilter),
        ("created_at", DateFieldListFilter),
    )
    search_fields = ("conversation__owner__username", "=model")
    search_help_text = "The id of a conversation, a model, or part of a user name."
    ordering = ("-id",)
    fields = (
        ("conversation", "purpose"),
        ("message", "summary"),
        "model",
        ("tokens_estimated", "tokens_input", "tokens_cached", "tokens_output"),
        ("first_token_ms", "total_ms", "attempts"),
        "error",
        "sha256",
        "wide_refs",
        "created_at",
    )

    @admin.display(description="sent, by reference")
    def wide_refs(self, row: ModelCall) -> SafeString:
        return as_json(row.refs)

    def sections(self, request: HttpRequest, obj: ModelCall) -> dict[str, Any]:
        may_read = request.user.has_perm("memory.view_message")
        if obj.purpose != ModelCall.Purpose.REPLY or not may_read:
            return {}
        try:
            built = context.rebuild(obj)
        except (LookupError, TypeError, ValueError):
            return {"sent": {"broken": True}}
        return {"sent": {"built": built, "verified": built.sha256 == obj.sha256}}


@admin.register(Prompt)
class PromptAdmin(ReadOnlyAdmin):
    """System prompts and the wording around summaries, as they were sent."""

    list_display = ("__str__", "beginning")
    fields = ("sha256", "wide_text")

    @admin.display(description="text")
    def beginning(self, row: Prompt) -> str:
        return row.text[:BEGINNING]

    @admin.display(description="text")
    def wide_text(self, row: Prompt) -> SafeString:
        return as_text(row.text)
