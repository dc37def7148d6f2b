"""What happened on the site in a range of days: numbers alone, by queries that an index
over the day answers.
"""

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from itertools import accumulate
from math import ceil

from django.contrib.auth import get_user_model
from django.core.cache import cache
from django.db.models import (
    BigIntegerField,
    Case,
    Count,
    ExpressionWrapper,
    F,
    IntegerField,
    Q,
    QuerySet,
    Sum,
    When,
)
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce
from django.utils.functional import Promise

from chatsite import hooks
from chatsite.turns.models import Turn
from memory.compaction import lease
from memory.models import Conversation, ModelCall, Summary

from ..filters import after_a_gap
from .days import Days

OLD_SECONDS, NEW_SECONDS = 600, 60
UNDONE = (Summary.Status.FAILED, Summary.Status.REJECTED)
# Versions that a person wrote or brought back: nothing was compacted.
BY_HAND = ("edit", "restore")
FAILING = (Turn.State.FAILED, Turn.State.TRUNCATED, Turn.State.INTERRUPTED)
MEDIAN, P95 = 50, 95
# Latencies are told apart, and shown, to so many milliseconds.
STEP_MS = 10

# Of each day how many rows have which value.
Counts = dict[date, Counter[int]]


@dataclass(frozen=True, slots=True)
class Day:
    """One day of the range; None where there was nothing to measure."""

    compactions: int = 0
    failed: int = 0
    ratio: float | None = None
    reply_ms: float | None = None
    first_ms: float | None = None
    compaction_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Spending:
    """What one person spent with one model, on replies or, in a leaf app, on `use`."""

    user: str
    model: str
    use: Promise | str
    requests: int
    read: int
    written: int

    @property
    def tokens(self) -> int:
        return self.read + self.written


@dataclass(frozen=True, slots=True)
class Part:
    """What happened on some days; parts of other days can be added."""

    compactions: dict[date, tuple[int, int]]  # made and failed
    ratios: Counts
    times: dict[str, Counts]
    spending: list[Spending]
    failing_turns: int

    def __add__(self, other: "Part") -> "Part":
        return Part(
            compactions=self.compactions | other.compactions,
            ratios=self.ratios | other.ratios,
            times={name: self.times[name] | other.times[name] for name in self.times},
            spending=self.spending + other.spending,
            failing_turns=self.failing_turns + other.failing_turns,
        )


@dataclass(frozen=True, slots=True)
class SiteFigures:
    days: tuple[Day, ...]
    # Of the whole range, not means of days.
    ratio: float | None
    reply_ms: float | None
    spending: tuple[Spending, ...]
    failing_turns: int
    stopped: int
    gaps: int


def of(days: Days) -> SiteFigures:
    """The figures of these days: of today at most a minute old; of the days before,
    which hardly change any more, ten, and the gaps, which take reading all ranges."""
    part = None
    for span, seconds in zip(days.parted(), (OLD_SECONDS, NEW_SECONDS), strict=True):
        if span:
            key = f"site-figures-{span.first}-{span.last}"
            found = cache.get_or_set(key, partial(read, span), seconds)
            part = part + found if part else found
    gaps = cache.get_or_set("desk-gaps", _count_gaps, OLD_SECONDS)
    return _figures(days, part, gaps)


def measure(days: Days) -> SiteFigures:
    return _figures(days, read(days), _count_gaps())


def _figures(days: Days, part: Part, gaps: int) -> SiteFigures:
    stopped = Conversation.objects.filter(
        compaction_failures__gte=lease.MAX_FAILURES, deleted_at=None
    )
    return SiteFigures(
        days=tuple(_day(day, part) for day in days),
        ratio=median_share(sum(part.ratios.values(), Counter())),
        reply_ms=p95_ms(sum(part.times["reply_ms"].values(), Counter())),
        spending=_add_up(part.spending),
        failing_turns=part.failing_turns,
        stopped=stopped.count(),
        gaps=gaps,
    )


def _day(day: date, part: Part) -> Day:
    compactions, failed = part.compactions.get(day, (0, 0))
    return Day(
        compactions=compactions,
        failed=failed,
        ratio=median_share(part.ratios.get(day)),
        **{name: p95_ms(counts.get(day)) for name, counts in part.times.items()},
    )


def _add_up(spending: list[Spending]) -> tuple[Spending, ...]:
    """One row for each person and model."""
    found: dict[tuple[str, str, str], Spending] = {}
    for each in spending:
        key = (each.user, each.model, str(each.use))
        if same := found.get(key):
            each = replace(
                each,
                requests=same.requests + each.requests,
                read=same.read + each.read,
                written=same.written + each.written,
            )
        found[key] = each
    return tuple(found.values())


def p95_ms(counts: Counter[int] | None) -> float | None:
    found = find_percentile(counts or Counter(), P95)
    return None if found is None else found * STEP_MS


def median_share(counts: Counter[int] | None) -> float | None:
    found = find_percentile(counts or Counter(), MEDIAN)
    return None if found is None else found / 1000


def find_percentile(counts: Counter[int], percent: int) -> float | None:
    """The nearest rank, and of the median the mean of the two middle ones. None: there
    are no values."""
    size = counts.total()
    if not size:
        return None
    values = sorted(counts)
    ends = list(accumulate(counts[value] for value in values))
    lower = values[bisect_left(ends, ceil(size * percent / 100))]
    if percent != MEDIAN:
        return lower
    return (lower + values[bisect_left(ends, size // 2 + 1)]) / 2


def read(days: Days) -> Part:
    # A branch or an import brings older rows along: they were not made here.
    made_here = (
        days.during("created_at"),
        Q(created_at__gte=F("conversation__created_at")),
    )
    compactions = Summary.objects.filter(*made_here).order_by()
    compactions = compactions.exclude(trigger_kind__in=BY_HAND)
    calls = ModelCall.objects.filter(*made_here).order_by()
    made = compactions.exclude(status__in=UNDONE)
    replies = calls.filter(purpose=ModelCall.Purpose.REPLY, error="")
    left = made.filter(tokens_before__gt=0)
    first = replies.exclude(first_token_ms=None)
    failing = Turn.objects.filter(days.during("created_at"), state__in=FAILING)
    return Part(
        compactions=_count_compactions(compactions, days),
        ratios=count(left, days, F("tokens_after") * 1000 / F("tokens_before")),
        times={
            "reply_ms": count(replies, days, F("total_ms") / STEP_MS),
            "first_ms": count(first, days, F("first_token_ms") / STEP_MS),
            "compaction_ms": count(made, days, F("ms") / STEP_MS),
        },
        spending=_spending(calls) + _spent_by_leaves(days),
        failing_turns=failing.count(),
    )


def count(rows: QuerySet, days: Days, value: Combinable) -> Counts:
    """How many rows of each day have which value.

    The database counts to a hundredth of a second or a tenth of a percent, which is
    all that is shown; so medians and percentiles are exact and the same on both.
    """
    whole = ExpressionWrapper(value, output_field=IntegerField())
    groups = rows.annotate(day=days.number("created_at"), value=whole)
    counted = groups.values("day", "value").annotate(count=Count("pk"))
    dates, counts = list(days), {}
    for day, found, number in counted.values_list("day", "value", "count"):
        counts.setdefault(dates[day], Counter())[found] = number
    return counts


def _count_compactions(
    compactions: QuerySet[Summary], days: Days
) -> dict[date, tuple[int, int]]:
    counted = (
        compactions.annotate(day=days.number("created_at"))
        .values("day")
        .annotate(
            made=Count("pk", ~Q(status__in=UNDONE)),
            failed=Count("pk", Q(status__in=UNDONE)),
        )
    )
    dates = list(days)
    rows = counted.values_list("day", "made", "failed")
    return {dates[day]: (made, failed) for day, made, failed in rows}


def _spending(calls: QuerySet[ModelCall]) -> list[Spending]:
    """Tokens as reported, else estimated; what failed before its first word and
    reported nothing was not billed."""
    free = ~Q(error="") & Q(tokens_input=None, message=None)
    number = BigIntegerField()
    asked = Coalesce("tokens_input", "tokens_estimated", output_field=number)
    read = Case(When(free, then=0), default=asked, output_field=number)
    written = Coalesce("tokens_output", "message__tokens", 0, output_field=number)
    rows = calls.values_list("conversation__owner", "model").annotate(
        requests=Count("pk"), sum_read=Sum(read), sum_written=Sum(written)
    )
    users = get_user_model()
    people = users._default_manager.filter(pk__in={owner for owner, *_ in rows})
    names = dict(people.values_list("pk", users.USERNAME_FIELD))
    return [Spending(names[owner], model, "", *sums) for owner, model, *sums in rows]


def _spent_by_leaves(days: Days) -> list[Spending]:
    sums = (Sum("requests"), Sum("tokens_in"), Sum("tokens_out"))
    found = []
    for model in hooks.spending_tables:
        rows = model._default_manager.filter(days.during("created_at"), requests__gt=0)
        use = model._meta.verbose_name_plural
        values = rows.order_by().values_list("user__username", "model", *sums)
        for user, name, *numbers in values:
            found.append(Spending(user or "–", name, use, *numbers))
    return found


def _count_gaps() -> int:
    """Conversations whose active summaries leave messages out, or take some twice."""
    return len(set(after_a_gap().values_list("conversation_id", flat=True)))
