"""Conversations in the admin: whose, how large, and how their memory fares."""

from typing import Any

from django.contrib import admin
from django.db.models import F, OuterRef, QuerySet, TextField, Value
from django.db.models.fields.json import KT
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.urls import URLPattern
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from chatsite.pages.forms import preset_name
from memory import context
from memory.compaction import lease
from memory.engine.policy import DEFAULT_PRESET, PRESETS
from memory.models import Conversation, Message, ModelCall, Summary
from memory.sql import count_rows_by

from .. import filters, redaction
from ..actions import views as action_views
from ..actions.views import ask_about_chosen
from ..charts import conversation as chart_views
from ..pages import timeline_link
from ..readonly import (
    SEARCH_HELP,
    ReadOnlyAdmin,
    as_text,
    beginning_of,
    json_of,
    link_to_list,
)
from ..rights import rights_of
from ..timeline import views as timeline_views


@admin.register(Conversation)
class ConversationAdmin(ReadOnlyAdmin):
    actions = ("mark_reviewed", "rebuild", "purge")
    list_display = (
        "short_id",
        "title_shown",
        "owner",
        "preset_shown",
        "messages_link",
        "summaries_link",
        "compaction_state",
        "timeline_shown",
        "updated_at",
    )
    list_display_links = ("short_id", "title_shown")
    list_filter = (
        filters.CompactionFilter,
        filters.ReviewFilter,
        filters.FailedTurnFilter,
        filters.PolicyFilter,
        filters.ModelFilter,
        filters.OwnerFilter,
        ("archived_at", filters.SetFilter),
        "created_at",
    )
    list_select_related = ("owner",)
    search_fields = ("owner__username",)
    search_help_text = SEARCH_HELP
    conversation_id_field = "uuid"
    owner_field = "owner"
    texts = redaction.CONVERSATION
    target = "conversation"
    heads = ("title",)
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "title_shown",
                    ("owner", "uuid"),
                    ("model", "temperature"),
                    ("messages_link", "summaries_link", "requests_link"),
                    "compaction_state",
                    ("created_at", "updated_at"),
                )
            },
        ),
        (
            gettext_lazy("Policy and system prompt"),
            {"classes": ["collapse"], "fields": ("wide_system_prompt", "wide_policy")},
        ),
        (
            gettext_lazy("State"),
            {
                "classes": ["collapse"],
                "fields": (
                    ("compaction_failures", "compaction_retry_at"),
                    ("pinned_at", "archived_at"),
                ),
            },
        ),
    )

    title_shown = beginning_of("title", gettext_lazy("title"))

    def get_urls(self) -> list[URLPattern]:
        # Django's own end with a pattern that takes everything.
        return [
            *timeline_views.urlpatterns,
            *chart_views.urlpatterns,
            *action_views.urlpatterns,
            *super().get_urls(),
        ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Conversation]:
        rows = super().get_queryset(request)
        if rights_of(request.user).content:
            rows = rows.annotate(stored_policy=F("policy"))
        own = {"conversation": OuterRef("pk")}
        return rows.annotate(
            # Not the key itself, which a filter would compare as JSON.
            preset_name=Coalesce(
                KT("policy__preset"), Value(""), output_field=TextField()
            ),
            message_count=count_rows_by(Message.objects.filter(**own), "conversation"),
            summary_count=count_rows_by(Summary.objects.filter(**own), "conversation"),
        )

    @admin.display(description=gettext_lazy("id"))
    def short_id(self, row: Conversation) -> SafeString:
        uuid = str(row.uuid)
        return format_html('<span title="{}">{}</span>', uuid, uuid[:8])

    @admin.display(description=gettext_lazy("preset"))
    def preset_shown(self, row: Conversation) -> str:
        # Only its name: a policy can hold the owner's own prompts.
        name = row.preset_name or DEFAULT_PRESET
        whole = Conversation(policy=getattr(row, "stored_policy", {}))
        is_valid = name in PRESETS and not whole.policy_error
        return preset_name(name) if is_valid else _("not valid")

    @admin.display(description=gettext_lazy("messages"))
    def messages_link(self, row: Conversation) -> SafeString:
        return link_to_list(Message, row.message_count, conversation__id__exact=row.pk)

    @admin.display(description=gettext_lazy("summaries"))
    def summaries_link(self, row: Conversation) -> SafeString:
        return link_to_list(Summary, row.summary_count, conversation__id__exact=row.pk)

    @admin.display(description=gettext_lazy("timeline"))
    def timeline_shown(self, row: Conversation) -> SafeString:
        return timeline_link(row.pk, _("open"))

    @admin.display(description=gettext_lazy("state of summaries"))
    def compaction_state(self, row: Conversation) -> str:
        if not row.compaction_failures:
            return _("working")
        count = {"count": row.compaction_failures}
        if lease.may_compact(row):
            return _("failed %(count)s times, will try again") % count
        return _("stopped after %(count)s failures") % count

    @admin.display(description=gettext_lazy("system prompt"))
    def wide_system_prompt(self, row: Conversation) -> SafeString:
        if redaction.may_read(row):
            return as_text(context.find_system_prompt(row))
        return as_text(redaction.show_text(row, "system_prompt") or _("the site's own"))

    @admin.display(description=gettext_lazy("policy"))
    def wide_policy(self, row: Conversation) -> SafeString | str:
        stored = json_of(row, "policy")
        if not redaction.may_read(row):
            return f"{self.preset_shown(row)} ({stored})"
        if not row.policy_error:
            return stored
        return format_html(
            "{}<p>{}</p>",
            stored,
            _("Not valid, so the default applies: %(error)s")
            % {"error": row.policy_error},
        )

    @admin.display(description=gettext_lazy("model calls"))
    def requests_link(self, row: Conversation) -> SafeString:
        return link_to_list(ModelCall, _("open"), conversation__id__exact=row.pk)

    # Django offers an action to staff for whom `has_<permission>_permission` is true.

    def has_content_permission(self, request: HttpRequest) -> bool:
        return rights_of(request.user).content

    def has_purge_permission(self, request: HttpRequest) -> bool:
        return rights_of(request.user).purge

    @admin.action(description=gettext_lazy("Mark reviewed"), permissions=["content"])
    def mark_reviewed(self, request: HttpRequest, queryset: QuerySet) -> Any:
        return ask_about_chosen(request, "review", queryset)

    @admin.action(
        description=gettext_lazy("Summarise again from scratch"),
        permissions=["content"],
    )
    def rebuild(self, request: HttpRequest, queryset: QuerySet) -> Any:
        return ask_about_chosen(request, "rebuild", queryset)

    @admin.action(description=gettext_lazy("Erase permanently"), permissions=["purge"])
    def purge(self, request: HttpRequest, queryset: QuerySet) -> Any:
        return ask_about_chosen(request, "purge", queryset)
