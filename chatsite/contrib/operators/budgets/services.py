"""Use, recorded where it is charged, and the rest of each budget.

A request is refused where nothing is left.
"""

from collections import defaultdict
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from time import monotonic
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import F, Q
from django.db.models.signals import post_delete, post_save
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from chatsite.llm import pricing
from chatsite.protocol.errors import CommandError
from chatsite.turns.limits import ModelUse
from memory.sql import Update, prepared_update

from .models import Budget, MonthlyUse

# For so long a process believes that the site has no budgets.
KNOWN_SECONDS = 10.0
# A refusal is believed for a day at most: staff may give more meanwhile.
LONGEST_SECONDS = 86_400.0


def find_month(day: date | None = None) -> date:
    return (day or timezone.localdate()).replace(day=1)


def note_use(user: int, used: ModelUse, **_: object) -> None:
    """Write down one request, in the transaction in which it is charged."""
    key = {"user": user, "month": find_month(), "model": used.model[:100]}
    counts = {n: getattr(used, n) for n in ("read", "cached", "written", "extra")}
    if not _add_use(**key, **counts):
        values = {"user_id": key.pop("user"), **key}
        MonthlyUse.objects.bulk_create([MonthlyUse(**values)], ignore_conflicts=True)
        _add_use(user=user, **key, **counts)


@prepared_update()
def _add_use(
    user: Any, month: Any, model: Any, read: Any, cached: Any, written: Any, extra: Any
) -> Update:
    rows = MonthlyUse.objects.filter(user=user, month=month, model=model)
    return rows, {
        "requests": F("requests") + 1,
        "read": F("read") + read,
        "cached": F("cached") + cached,
        "written": F("written") + written,
        "extra": F("extra") + extra,
    }


def check_budgets(user_id: int) -> None:
    """Raise CommandError if a budget of the user or their groups is used up."""
    for budget in measure_for(user_id):
        if budget.is_used_up:
            raise _refuse(budget)


def _refuse(budget: Budget) -> CommandError:
    following = find_month(find_month() + timedelta(days=31))
    begins = timezone.make_aware(datetime.combine(following, time()))
    seconds = (begins - timezone.now()).total_seconds()
    text = _(
        "%(used)s The limit is renewed on %(day)s. Nothing is lost; if you need "
        "more before then, ask the site administrator."
    )
    day = date_format(following, "MONTH_DAY_FORMAT")
    detail = text % {"used": budget.sentence, "day": day}
    return CommandError("quota", detail, retry_after=min(seconds, LONGEST_SECONDS))


class _BudgetCheck:
    """A cached check for any budgets.

    Most sites have none, and are not asked for each message.
    """

    def __init__(self) -> None:
        self.none_until = 0.0

    def forget(self, **_: object) -> None:
        self.none_until = 0.0

    def are_none(self) -> bool:
        if monotonic() < self.none_until:
            return True
        if Budget.objects.exists():
            return False
        self.none_until = monotonic() + KNOWN_SECONDS
        return True


known = _BudgetCheck()
for changed in (post_save, post_delete):
    changed.connect(known.forget, sender=Budget)


def measure_for(user_id: int) -> list[Budget]:
    """Return the budgets of the user and their groups with `used`, fullest first."""
    if known.are_none():
        return []
    rows = Budget.objects.filter(Q(user=user_id) | Q(group__user=user_id))
    found = measure_budgets(rows.select_related("group").distinct())
    return sorted(found, key=lambda each: -each.share)


def measure_budgets(budgets: Iterable[Budget]) -> list[Budget]:
    """Set `used` of each budget, in two statements for all; return the budgets."""
    budgets = list(budgets)
    groups = {each.group_id for each in budgets if each.group_id}
    people = {each.user_id for each in budgets if each.user_id}
    members = defaultdict(set)
    if groups:
        pairs = get_user_model().groups.through.objects.filter(group__in=groups)
        for group, user in pairs.values_list("group_id", "user_id"):
            members[group].add(user)
    used = _sum_use(people.union(*members.values()))
    for each in budgets:
        users = members[each.group_id] if each.group_id else [each.user_id]
        each.used = sum(used[user][each.unit] for user in users)
    return budgets


def _sum_use(people: set[int]) -> dict[int, dict[str, float]]:
    """Return the use of each user in this month, by unit."""
    found: dict[int, dict[str, float]]
    found = defaultdict(lambda: dict.fromkeys(Budget.Unit.values, 0.0))
    rows = MonthlyUse.objects.filter(month=find_month(), user__in=people).order_by()
    for use in rows:
        found[use.user_id][Budget.Unit.TOKENS] += use.read + use.written
        found[use.user_id][Budget.Unit.DOLLARS] += price_use(use)
    return found


def price_use(use: MonthlyUse) -> float:
    counts = (use.read, use.written, use.cached, use.extra)
    return pricing.price_tokens(use.model, *counts)


def list_use(user: AbstractBaseUser) -> list[dict[str, Any]]:
    """Return the monthly use for the download of the account."""
    rows = MonthlyUse.objects.filter(user=user.pk).order_by("month", "model")
    names = ("month", "model", "requests", "read", "cached", "written")
    return list(rows.values(*names))
