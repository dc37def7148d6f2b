"""What the admin's pages have in common: read-only lists and pages, links between
them, filters, and text shown as text.
"""

import json
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import admin
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from . import folding
from .engine.policy import TRIGGER_KINDS

SEARCH_HELP = "The id of a conversation, or part of a user name."

Filters = list[tuple[str, str]]


class ReadOnlyAdmin(admin.ModelAdmin):
    """Found by people and exact ids; what people wrote can not be searched."""

    show_full_result_count = False
    list_per_page = 50
    conversation_id_field = ""

    class Media:
        css = {"all": ["css/admin.css"]}

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody's, not even a superuser's, on a site that promises so."""
        may_read = settings.STAFF_CAN_READ_CHATS
        return may_read and super().has_view_permission(request, obj)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        try:
            wanted = UUID(search_term.strip())
        except ValueError:
            return super().get_search_results(request, queryset, search_term)
        return queryset.filter(**{self.conversation_id_field: wanted}), False

    def sections(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        """What the template of the page shows besides the fields."""
        return {}

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        context.update(self.sections(request, kwargs.get("obj")))
        return super().render_change_form(request, context, *args, **kwargs)


class ConversationPartAdmin(ReadOnlyAdmin):
    """Rows that belong to a conversation and are found through it."""

    list_select_related = ("conversation__owner",)
    search_fields = ("conversation__owner__username",)
    search_help_text = SEARCH_HELP
    conversation_id_field = "conversation__uuid"

    @admin.display(description="conversation")
    def in_conversation(self, row: Any) -> SafeString:
        return link_to(row.conversation, str(row.conversation.uuid)[:8])

    @admin.display(description="owner")
    def owner_name(self, row: Any) -> str:
        return row.conversation.owner.get_username()


def link_to(row: Model, text: str) -> SafeString:
    meta = row._meta
    url = reverse(f"admin:{meta.app_label}_{meta.model_name}_change", args=[row.pk])
    return format_html('<a href="{}">{}</a>', url, text)


def link_to_list(model: type[Model], text: str, **lookups: Any) -> SafeString:
    meta = model._meta
    url = reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist")
    return format_html('<a href="{}?{}">{}</a>', url, urlencode(lookups), text)


def as_text(text: str) -> SafeString:
    return format_html('<pre class="wrap">{}</pre>', text)


def as_json(value: object) -> SafeString:
    return as_text(json.dumps(value, ensure_ascii=False, indent=2))


class FoldingFilter(admin.SimpleListFilter):
    title = "folding"
    parameter_name = "folding"
    conditions = {
        "working": Q(fold_failures=0),
        "failing": Q(fold_failures__range=(1, folding.MAX_FAILURES - 1)),
        "stopped": Q(fold_failures__gte=folding.MAX_FAILURES),
    }

    def lookups(self, request: HttpRequest, model_admin: Any) -> Filters:
        return [(name, name.capitalize()) for name in self.conditions]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        return queryset.filter(self.conditions.get(self.value(), Q()))


OTHER_KINDS = ("manual", "change", "edit", "restore")


class TriggerFilter(admin.SimpleListFilter):
    title = "trigger"
    parameter_name = "trigger"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Filters:
        kinds = (*TRIGGER_KINDS, "summary_tokens", *OTHER_KINDS)
        return [(kind, kind.replace("_", " ").capitalize()) for kind in kinds]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        kind = self.value()
        return queryset.filter(trigger__kind=kind) if kind else queryset
