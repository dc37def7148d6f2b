"""Budgets in the admin, for staff who see numbers and may change them.

The use by user, group, model and month is shown as a list and as CSV.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth import get_user_model
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase, StreamingHttpResponse
from django.utils.translation import gettext_lazy as _

from chatsite.llm import pricing
from chatsite.review import access_log, csv_lists
from chatsite.review.readonly import NumbersAdmin, ReadOnlyAdmin, people_found

from . import services
from .models import Budget, MonthlyUse

BATCH = 1_000
HEAD = (
    *("month", "person", "groups", "model", "requests", "tokens_read"),
    *("tokens_cached", "tokens_written", "dollars"),
)


class MeasuredList(ChangeList):
    """The rows of a page, each with what was used of it."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = self.model_admin.complete_rows(self.result_list)


@admin.register(Budget)
class BudgetAdmin(NumbersAdmin):
    list_display = ("__str__", "shown_kind", "shown_amount", "shown_use", "shown_share")
    list_filter = ("unit",)
    list_select_related = ("user", "group")
    list_per_page = 50
    search_fields = ("user__username",)
    search_help_text = _("The beginning of a user name, or the name of a group.")
    raw_id_fields = ("user",)
    fields = ("user", "group", "unit", "amount")

    def complete_rows(self, rows: Sequence[Any]) -> list[Any]:
        return services.measure_budgets(rows)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return MeasuredList

    def search_rows(self, rows: QuerySet, term: str) -> QuerySet:
        named = Q(group__name__icontains=term)
        return rows.filter(Q(user__in=people_found(term)) | named)

    @admin.display(description=_("user or group"))
    def shown_kind(self, row: Budget) -> Any:
        return _("group") if row.group_id else _("user")

    @admin.display(description=_("in a month"), ordering="amount")
    def shown_amount(self, row: Budget) -> str:
        return row.say_amount()

    @admin.display(description=_("used in this month"))
    def shown_use(self, row: Budget) -> str:
        return row.say_amount(row.used)

    @admin.display(description=_("share"))
    def shown_share(self, row: Budget) -> str:
        return f"{row.percent} %"


@admin.register(MonthlyUse)
class MonthlyUseAdmin(ReadOnlyAdmin):
    list_display = (
        *("month", "user", "model", "requests", "read", "cached", "written"),
        "shown_dollars",
    )
    list_display_links = None
    list_filter = ("month",)
    list_select_related = ("user",)
    list_per_page = 50
    owner_field = "user"
    search_fields = ("user__username",)
    search_help_text = _("The beginning of a user name, or an e-mail address.")
    actions = ("export_csv",)
    fields = ("month", "user", "model", ("requests", "read", "cached", "written"))

    @admin.display(description=_("cost"))
    def shown_dollars(self, row: MonthlyUse) -> str:
        if not pricing.has_prices():
            return "–"
        return pricing.format_dollars(services.price_use(row))

    @admin.action(description=_("Export as CSV"), permissions=["view"])
    def export_csv(self, request: HttpRequest, queryset: QuerySet) -> HttpResponseBase:
        action = access_log.StaffAction.CSV
        access_log.record_access(request, action, None, "csv monthlyuse")
        rows = queryset.select_related("user").order_by("month", "user", "model")
        response = StreamingHttpResponse(write_csv(rows), content_type="text/csv")
        response["Content-Disposition"] = 'attachment; filename="monthly-use.csv"'
        return response


def write_csv(rows: QuerySet) -> Iterator[str]:
    yield csv_lists.write_line(HEAD)
    groups = _name_groups()
    for use in rows.iterator(BATCH):
        yield csv_lists.write_line(
            (
                f"{use.month:%Y-%m}",
                use.user.get_username(),
                "; ".join(groups[use.user_id]),
                use.model,
                *(use.requests, use.read, use.cached, use.written),
                f"{services.price_use(use):.6f}",
            )
        )


def _name_groups() -> dict[int, list[str]]:
    """Return the groups of each user, in one statement."""
    found = defaultdict(list)
    pairs = get_user_model().groups.through.objects.order_by("group__name")
    for user, name in pairs.values_list("user_id", "group__name"):
        found[user].append(name)
    return found
