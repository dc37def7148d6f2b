"""The access log in the admin: nobody adds to it, changes it or takes anything out."""

from typing import Any

from django.contrib import admin
from django.contrib.admin import DateFieldListFilter
from django.contrib.auth import get_user_model
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from memory.models import Conversation

from .. import access_log
from ..filters import Filters
from ..models import AccessEvent
from ..readonly import ReadOnlyAdmin, kept_of, link_to_list

MAX_STAFF = 100


class StaffFilter(admin.SimpleListFilter):
    """Those who work here now; whoever has left is found by name."""

    title = _("who")
    parameter_name = "staff"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Filters:
        staff = get_user_model().objects.filter(is_staff=True).order_by("username")
        return list(staff.values_list("pk", "username")[:MAX_STAFF])

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        known = {str(pk) for pk, _name in self.lookup_choices}
        if self.value() is None:
            return queryset
        return queryset.filter(user=self.value()) if self.value() in known else queryset


@admin.register(AccessEvent)
class AccessEventAdmin(ReadOnlyAdmin):
    list_display = (
        "created_at",
        "username",
        "action",
        "part",
        "in_conversation",
        "owner",
        "address",
    )
    list_filter = ("action", ("created_at", DateFieldListFilter), StaffFilter)
    list_select_related = ("owner",)
    # By whom or of whom, or the conversation; see get_search_results.
    search_fields = ("username",)
    search_help_text = _(
        "The id of a conversation or its first eight characters, or an exact user name."
    )
    ordering = ("-id",)
    sortable_by = ()
    fields = (
        "created_at",
        ("username", "user"),
        ("action", "part"),
        ("of_conversation", "owner"),
        "address",
    )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        found = kept_of(queryset, search_term)
        if found is None:
            term = search_term.strip()
            people = get_user_model().objects.filter(username=term)
            owners = list(people.values_list("pk", flat=True))
            found = queryset.filter(Q(username=term) | Q(owner__in=owners))
        return found, False

    @admin.display(description=_("what"))
    def part(self, row: AccessEvent) -> str:
        return access_log.in_words(row.target)

    @admin.display(description=_("conversation"))
    def in_conversation(self, row: AccessEvent) -> SafeString | str:
        return _link(row, str(row.conversation)[:8])

    @admin.display(description=_("conversation"))
    def of_conversation(self, row: AccessEvent) -> SafeString | str:
        return _link(row, str(row.conversation))


def _link(row: AccessEvent, name: str) -> SafeString | str:
    """To the conversation, which may be erased: then the list is empty."""
    if not row.conversation:
        return "–"
    return link_to_list(Conversation, name, q=str(row.conversation))
