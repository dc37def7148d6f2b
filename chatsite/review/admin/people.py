"""Users in the admin: Django's own page, their usage, and their token limit.

The limit is the one number about users that staff may change here.
"""

from datetime import datetime, timedelta
from typing import Any

from axes.admin import AccessAttemptAdmin
from axes.models import AccessAttempt
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.models import DELETION, LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.admin import UserAdmin
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.db.models import Count, QuerySet, Sum
from django.db.models.functions import TruncDate
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache

from chatsite.accounts import account
from chatsite.llm import pricing
from chatsite.turns import limits
from chatsite.turns.models import Allowance
from memory.actions import ActionError
from memory.models import Conversation, Message, ModelCall
from memory.models.call import billed_tokens

from .. import labels, redaction
from ..access_log import record_access
from ..actions import erasing, people
from ..actions.forms import PurgeForm
from ..filters import SetFilter
from ..models import AccessEvent
from ..pages import render_admin
from ..readonly import NumbersAdmin, ShortListAdmin, link_to, people_found
from ..rights import rights_of

User = get_user_model()
DAYS = 14


def figures_of(user: Any) -> dict[str, Any]:
    """Return the usage of one user, from their own rows alone."""
    stored = Allowance.objects.filter(user=user).first()
    allowance = stored or Allowance(user=user)
    uses = _sum_uses(user)
    tokens_in = sum(use["tokens_in"] for use in uses)
    tokens_out = sum(use["tokens_out"] for use in uses)
    return {
        "user": user,
        "conversations": redaction.select_lasting().filter(owner=user).count(),
        "messages": Message.objects.filter(conversation__owner=user).count(),
        "used_today": limits.used_on(allowance, timezone.localdate()),
        "budget": limits.budget_of(allowance),
        "allowance": stored,
        "days": DAYS,
        "uses": uses,
        "tokens": tokens_in + tokens_out,
        "cost": labels.format_cost(sum(use["dollars"] for use in uses)),
        "has_prices": pricing.has_prices(),
    }


def _sum_uses(user: Any) -> list[dict[str, Any]]:
    """Return requests by day and model, the latest day first."""
    rows = (
        ModelCall.objects.filter(
            conversation__owner=user,
            # So that the index by conversation, purpose and time serves.
            purpose__in=ModelCall.Purpose.values,
            created_at__gte=timezone.now() - timedelta(days=DAYS),
        )
        .annotate(day=TruncDate("created_at"), **billed_tokens())
        .values("day", "model")
        .annotate(
            requests=Count("pk"),
            tokens_in=Sum("billed_read"),
            tokens_out=Sum("billed_written"),
            tokens_cached=Sum("billed_cached"),
            tokens_extra=Sum("billed_extra"),
        )
        .order_by("-day", "model")
    )
    uses = []
    for row in rows:
        names = ("tokens_in", "tokens_out", "tokens_cached", "tokens_extra")
        dollars = pricing.price_tokens(row["model"], *map(row.get, names))
        uses.append({**row, "dollars": dollars, "cost": labels.format_cost(dollars)})
    return uses


class FiguresAdmin(ShortListAdmin):
    """Admin that shows usage below a form, to staff who may see numbers."""

    change_form_template = "admin/review/person.html"

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        row = kwargs.get("obj")
        if row and rights_of(request.user).metadata:
            context["account"] = figures_of(getattr(row, "user", row))
        context["may_erase"] = bool(row) and may_erase_person(request.user)
        return super().render_change_form(request, context, *args, **kwargs)


@admin.register(Allowance)
class AllowanceAdmin(FiguresAdmin, NumbersAdmin):
    """The usage of users, of which only `tokens_per_day` can be changed.

    Staff need Django's permission to change allowances besides the one to see numbers.
    """

    list_display = (
        "user",
        "used_today",
        "budget_shown",
        "tokens_per_day",
        "account_link",
    )
    list_filter = (("tokens_per_day", SetFilter),)
    list_select_related = ("user",)
    list_per_page = 50
    ordering = ("-day", "-tokens_used")
    search_fields = ("user__username",)
    search_help_text = gettext_lazy(
        "The beginning of a user name, or an e-mail address."
    )
    raw_id_fields = ("user",)
    fields = ("user", "account_link", "tokens_per_day", "budget_shown", "used_today")

    def get_readonly_fields(
        self, request: HttpRequest, obj: Allowance | None = None
    ) -> tuple[str, ...]:
        shown = ("account_link", "budget_shown", "used_today")
        return ("user", *shown) if obj else shown

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # It would give back what was used.
        return False

    def search_rows(self, rows: QuerySet, term: str) -> QuerySet:
        return rows.filter(user__in=people_found(term))

    @admin.display(description=gettext_lazy("used today"), ordering="tokens_used")
    def used_today(self, row: Allowance) -> str:
        return f"{limits.used_on(row, timezone.localdate()):,}"

    @admin.display(description=gettext_lazy("tokens per day"))
    def budget_shown(self, row: Allowance) -> str:
        budget = limits.budget_of(row)
        return f"{budget:,}" if budget else _("no limit")

    @admin.display(description=gettext_lazy("account"))
    def account_link(self, row: Allowance) -> SafeString | str:
        return link_to(row.user, _("account")) if row.pk else "-"


def may_erase_person(user: Any) -> bool:
    """Both what erases conversations and what deletes accounts is needed."""
    return rights_of(user).purge and user.has_perm("auth.delete_user")


def show_erasure(request: HttpRequest, person: int) -> HttpResponse:
    """Show the page before a user is erased; on POST, erase the user."""
    if not may_erase_person(request.user):
        raise PermissionDenied
    user = get_object_or_404(User, pk=person)
    code = people.code_of_person(user)
    form = PurgeForm(request.POST or None, code=code)
    if request.method == "POST" and form.is_valid():
        try:
            return _erase_by_form(request, user, form.cleaned_data["reason"])
        except ActionError as error:
            messages.error(request, str(error))
    return render_admin(
        request,
        "admin/review/erase_person.html",
        User,
        _("Erase this user"),
        status=422 if form.errors else 200,
        account=user,
        refusal=people.refuse_erasure(user, request.user),
        counts=erasing.count_rows(Conversation.objects.filter(owner=user)),
        code=code,
        form=form,
    )


def _erase_by_form(request: HttpRequest, user: Any, reason: str) -> HttpResponse:
    name, number = user.get_username(), user.pk
    people.erase_person(user, by=request.user, reason=reason)
    record_access(request, AccessEvent.StaffAction.PURGE, None, f"account {number}")
    text = _("%(name)s was erased. A deletion record stays.")
    messages.success(request, text % {"name": name})
    return redirect("admin:auth_user_changelist")


@admin.register(AccessAttempt)
class WrongLogInAdmin(ShortListAdmin, AccessAttemptAdmin):
    """Wrong logins of each name and address; deleting one unlocks it."""

    list_display = (
        "username",
        "ip_address",
        "failures_since_start",
        "locked_until",
        "attempt_time",
        "path_info",
    )

    @admin.display(description=gettext_lazy("locked until"))
    def locked_until(self, row: AccessAttempt) -> datetime | None:
        ends_at = row.attempt_time + settings.AXES_COOLOFF_TIME
        is_full = row.failures_since_start >= settings.AXES_FAILURE_LIMIT
        return ends_at if is_full and timezone.now() < ends_at else None


admin.site.unregister(User)


@admin.register(User)
class PersonAdmin(FiguresAdmin, UserAdmin):
    """Django's own page of a user, with the user's usage below.

    Deleting a user deletes the account, as users can do themselves.
    """

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(never_cache(show_erasure))
        page = path("<int:person>/erase/", view, name="review-erase-person")
        return [page, *super().get_urls()]

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[Any, Any, Any, Any]:
        # Django would load all messages of these people to list them.
        owners = redaction.select_lasting().filter(owner__in=objs).values("owner")
        words = _(
            "%(name)s has conversations: use “Erase this user” on the page of the "
            "account, or let %(name)s delete the account."
        )
        people = User.objects.filter(pk__in=owners)
        if kept := [words % {"name": row.get_username()} for row in people]:
            return [], {}, set(), kept
        shown, counts, _needed, kept = super().get_deleted_objects(objs, request)
        # Both views that call this have asked for the permission to delete users. What
        # belongs to an account goes with it, also rows that cannot be deleted alone.
        return shown, counts, set(), kept

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        try:
            return super().delete_view(request, object_id, extra_context)
        except account.BusyError:
            return self._say_busy(request)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        try:
            return super().changelist_view(request, extra_context)
        except account.BusyError:
            return self._say_busy(request)

    def _say_busy(self, request: HttpRequest) -> HttpResponse:
        text = _("This user still has running jobs. Try again in a moment.")
        self.message_user(request, text, messages.ERROR)
        return redirect(request.get_full_path())

    def log_deletions(self, request: HttpRequest, queryset: Any) -> list[LogEntry]:
        # Before they are deleted, and with their names: delete_model() does it.
        return []

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet) -> None:
        for user in queryset:
            self.delete_model(request, user)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Delete the account with all that is the user's.

        The entry in the admin's own log has the number of the account, not the name.
        """
        account.delete_account(obj)
        LogEntry.objects.create(
            user_id=request.user.pk,
            content_type=ContentType.objects.get_for_model(User),
            object_id=str(obj.pk),
            object_repr=_("account %(number)s") % {"number": obj.pk},
            action_flag=DELETION,
        )
