"""People in the admin: Django's own page of a user, what they have used of the site,
and the one number about them that staff may change here.
"""

from typing import Any

from django.contrib import admin
from django.contrib.admin import EmptyFieldListFilter
from django.contrib.auth import get_user_model
from django.contrib.auth.admin import UserAdmin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from chatsite.turns import limits
from chatsite.turns.models import Allowance
from memory.models import Conversation

from .. import people
from ..readonly import ShortPaginator, link_to, people_found
from ..rights import rights_of

User = get_user_model()


@admin.register(Allowance)
class AllowanceAdmin(admin.ModelAdmin):
    """What people have used; `tokens_per_day` alone can be changed, by those who have
    Django's permission to change allowances beside the desk's to see numbers.
    """

    change_form_template = "admin/desk/person.html"
    list_display = ("user", "used_today", "budget", "tokens_per_day", "account")
    list_filter = (("tokens_per_day", EmptyFieldListFilter),)
    list_select_related = ("user",)
    list_per_page = 50
    paginator = ShortPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    ordering = ("-day", "-tokens_used")
    search_fields = ("user__username",)
    search_help_text = gettext_lazy(
        "The beginning of a user name, or an e-mail address."
    )
    raw_id_fields = ("user",)
    fields = ("user", "account", "tokens_per_day", "budget", "used_today")

    class Media:
        css = {"all": ["css/admin.css"]}

    def get_readonly_fields(
        self, request: HttpRequest, obj: Allowance | None = None
    ) -> tuple[str, ...]:
        shown = ("account", "budget", "used_today")
        return ("user", *shown) if obj else shown

    def has_module_permission(self, request: HttpRequest) -> bool:
        return rights_of(request.user).metadata

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return rights_of(request.user).metadata

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self._may(request) and super().has_add_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._may(request) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # It would give back what was used.
        return False

    def _may(self, request: HttpRequest) -> bool:
        return rights_of(request.user).metadata

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        term = search_term.strip()
        found = queryset.filter(user__in=people_found(term)) if term else queryset
        return found, False

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        if row := kwargs.get("obj"):
            context["person"] = people.figures_of(row.user)
        return super().render_change_form(request, context, *args, **kwargs)

    @admin.display(description=gettext_lazy("used today"), ordering="tokens_used")
    def used_today(self, row: Allowance) -> str:
        return f"{limits.used_on(row, timezone.localdate()):,}"

    @admin.display(description=gettext_lazy("tokens per day"))
    def budget(self, row: Allowance) -> str:
        budget = limits.budget_of(row)
        return f"{budget:,}" if budget else _("no limit")

    @admin.display(description=gettext_lazy("account"))
    def account(self, row: Allowance) -> SafeString | str:
        return link_to(row.user, _("account")) if row.pk else "-"


admin.site.unregister(User)


@admin.register(User)
class PersonAdmin(UserAdmin):
    """Django's own page of a user, with what the person has used below."""

    change_form_template = "admin/desk/person.html"
    paginator = ShortPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER

    class Media:
        css = {"all": ["css/admin.css"]}

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        row = kwargs.get("obj")
        if row and rights_of(request.user).metadata:
            context["person"] = people.figures_of(row)
        return super().render_change_form(request, context, *args, **kwargs)

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[Any, Any, Any, Any]:
        # Django would load all messages of these people to list them.
        if people_kept := _has_conversations(objs):
            words = _(
                "%(name)s has conversations: erase them first, or let %(name)s delete "
                "the account."
            )
            kept = [words % {"name": row.get_username()} for row in people_kept]
            return [], {}, set(), kept
        return super().get_deleted_objects(objs, request)


def _has_conversations(people: Any) -> list[Any]:
    owners = Conversation.objects.filter(owner__in=people).values("owner")
    return list(User.objects.filter(pk__in=owners))
