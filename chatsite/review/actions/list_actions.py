"""The acts in the list of conversations, for who has the right to each."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ..rights import rights_of
from . import bulk, exporting


class ConversationActs:
    """For the admin of conversations. Django offers an action to whom the method
    `has_<permission>_permission` lets."""

    actions = ("export_json", "export_zip", "mark_reviewed", "rebuild", "purge")

    def has_content_permission(self, request: HttpRequest) -> bool:
        return rights_of(request.user).content

    def has_export_permission(self, request: HttpRequest) -> bool:
        return rights_of(request.user).export

    def has_purge_permission(self, request: HttpRequest) -> bool:
        return rights_of(request.user).purge

    @admin.action(description=gettext_lazy("Export as JSON"), permissions=["export"])
    def export_json(self, request: HttpRequest, queryset: QuerySet) -> HttpResponse:
        ids = _ids(queryset)
        return exporting.many_as_json(request, ids, rights_of(request.user))

    @admin.action(
        description=gettext_lazy("Export as Markdown and JSON (zip)"),
        permissions=["export"],
    )
    def export_zip(self, request: HttpRequest, queryset: QuerySet) -> HttpResponse:
        ids = _ids(queryset)
        return exporting.many_as_zip(request, ids, rights_of(request.user))

    @admin.action(description=gettext_lazy("Mark reviewed…"), permissions=["content"])
    def mark_reviewed(self, request: HttpRequest, queryset: QuerySet) -> Any:
        return _ask(request, "review", queryset)

    @admin.action(
        description=gettext_lazy("Rebuild from the transcript…"),
        permissions=["content"],
    )
    def rebuild(self, request: HttpRequest, queryset: QuerySet) -> Any:
        return _ask(request, "rebuild", queryset)

    @admin.action(description=gettext_lazy("Erase for good…"), permissions=["purge"])
    def purge(self, request: HttpRequest, queryset: QuerySet) -> Any:
        return _ask(request, "purge", queryset)


def _ids(queryset: QuerySet) -> list[int]:
    return list(queryset.order_by("pk").values_list("pk", flat=True))


def _ask(request: HttpRequest, name: str, queryset: QuerySet) -> HttpResponse | None:
    rows = list(queryset.select_related("owner").order_by("pk")[: bulk.MAX_AT_ONCE + 1])
    if len(rows) <= bulk.MAX_AT_ONCE:
        return bulk.ask(request, name, rows)
    text = _("Choose at most %(count)s conversations at once.")
    messages.error(request, text % {"count": bulk.MAX_AT_ONCE})
    return None
