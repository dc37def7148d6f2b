"""Figures of the site on each of the last days: numbers alone.

Their queries use an index over the time. Each process's own counts are in `/metrics`.
"""

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from functools import partial
from itertools import accumulate
from math import ceil
from typing import Any

from django.core.cache import cache
from django.db.models import (
    Case,
    Count,
    Expression,
    ExpressionWrapper,
    F,
    IntegerField,
    Model,
    Q,
    QuerySet,
    Sum,
    Value,
    When,
)
from django.db.models.expressions import Combinable
from django.utils import timezone

from chatsite import plugins
from chatsite.llm import pricing
from chatsite.turns.models import Turn
from memory.compaction import lease
from memory.models import Conversation, ModelCall, Summary
from memory.models.call import billed_tokens

from .filters import after_a_gap

OLD_SECONDS, NEW_SECONDS = 600, 60
UNDONE = (Summary.Status.FAILED, Summary.Status.REJECTED)
# Versions that a user wrote or brought back: nothing was compacted.
BY_HAND = ("edit", "restore")
MEDIAN, P95 = 50, 95
# Reply times are grouped and shown to so many milliseconds.
STEP_MS = 10


@dataclass(slots=True)
class Day:
    """The figures of one day, or of several that were added up."""

    summaries: int = 0
    failed_summaries: int = 0
    failing_turns: int = 0
    requests: int = 0
    read: int = 0
    written: int = 0
    dollars: float = 0
    # How many rows have which value: thousandths, and steps of time.
    sizes: Counter[int] = field(default_factory=Counter)
    times: Counter[int] = field(default_factory=Counter)

    @property
    def size(self) -> float | None:
        """The median share of its tokens that a context has after a compaction."""
        found = find_percentile(self.sizes, MEDIAN)
        return None if found is None else found / 1000

    @property
    def reply_ms(self) -> float | None:
        found = find_percentile(self.times, P95)
        return None if found is None else found * STEP_MS

    def add_day(self, other: "Day") -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def add_requests(
        self,
        model: str,
        requests: int,
        read: int,
        written: int,
        cached: int = 0,
        extra: int = 0,
    ) -> None:
        self.requests += requests
        self.read += read
        self.written += written
        self.dollars += pricing.price_tokens(model, read, written, cached, extra)


Days = dict[date, Day]


@dataclass(frozen=True, slots=True)
class SiteFigures:
    days: Days
    total: Day
    # Conversations, as they are now.
    stopped: int
    gaps: int


def read_figures(count: int) -> SiteFigures:
    """Return the figures of the last days, today's at most a minute old.

    Those of the days before, which hardly change any more, are at most ten minutes old;
    so are the gaps, which take reading all ranges.
    """
    today = timezone.localdate()
    first = today - timedelta(days=count - 1)
    spans = ((first, count - 1, OLD_SECONDS), (today, 1, NEW_SECONDS))
    days: Days = {}
    for start, length, seconds in spans:
        key, read = f"site-days-{start}-{length}", partial(read_days, start, length)
        days |= cache.get_or_set(key, read, seconds) if length else {}
    total = Day()
    for day in days.values():
        total.add_day(day)
    stopped = Conversation.objects.filter(
        compaction_failures__gte=lease.MAX_FAILURES, deleted_at=None
    )
    # Their active summaries leave messages out, or take some twice.
    with_gaps = after_a_gap().values_list("conversation_id", flat=True)
    gaps = cache.get_or_set("review-gaps", lambda: len({*with_gaps}), OLD_SECONDS)
    return SiteFigures(days, total, stopped.count(), gaps)


def read_days(first: date, count: int) -> Days:
    # The last one is the day after, which ends the last day.
    dates = [first + timedelta(days=n) for n in range(count + 1)]
    starts = [timezone.make_aware(datetime.combine(each, time())) for each in dates]
    days = [Day() for _ in range(count)]
    _count_summaries(days, starts)
    _count_requests(days, starts)
    failing = Turn.objects.filter(state__in=Turn.FAILING)
    for n, rows in _by_day(failing, starts).annotate(Count("pk")):
        days[n].failing_turns = rows
    for model in filter(None, (data.spending for data in plugins.app_data)):
        sums = (Sum("requests"), Sum("tokens_in"), Sum("tokens_out"))
        spent = _by_day(model._default_manager, starts, "model")
        for n, *found in spent.annotate(*sums):
            days[n].add_requests(*found)
    return dict(zip(dates[:-1], days, strict=True))


def _by_day(rows: Any, starts: list[datetime], *values: str | Combinable) -> QuerySet:
    """Return groups of these days' rows, by the number of the day and the values."""
    during = {"created_at__gte": starts[0], "created_at__lt": starts[-1]}
    number = _number_of(starts, 0, len(starts) - 1)
    return rows.filter(**during).order_by().values_list(number, *values)


def _number_of(starts: list[datetime], low: int, high: int) -> Expression:
    """Return an expression for the number of the day of a row's time, from 0.

    Only comparisons: SQLite's time zones are a Python function, which takes seconds for
    the rows of a large site.
    """
    if high - low == 1:
        return Value(low, output_field=IntegerField())
    middle = (low + high) // 2
    return Case(
        When(created_at__lt=starts[middle], then=_number_of(starts, low, middle)),
        default=_number_of(starts, middle, high),
        output_field=IntegerField(),
    )


def _made_here(model: type[Model]) -> QuerySet:
    """Return the rows that were made here, not by a branch or an import."""
    return model.objects.filter(created_at__gte=F("conversation__created_at"))


def _as_integer(value: Combinable) -> Expression:
    """Return the value as an integer, so that what is counted is what is shown.

    Medians and percentiles are exact, and the same on both databases.
    """
    return ExpressionWrapper(value, output_field=IntegerField())


def _count_summaries(days: list[Day], starts: list[datetime]) -> None:
    tried = _made_here(Summary).exclude(trigger_kind__in=BY_HAND)
    failed = Count("pk", Q(status__in=UNDONE))
    for n, rows, undone in _by_day(tried, starts).annotate(Count("pk"), failed=failed):
        days[n].summaries, days[n].failed_summaries = rows - undone, undone
    measured = tried.exclude(status__in=UNDONE).filter(tokens_before__gt=0)
    share = _as_integer(F("tokens_after") * 1000 / F("tokens_before"))
    for n, value, rows in _by_day(measured, starts, share).annotate(Count("pk")):
        days[n].sizes[value] = rows


def _count_requests(days: list[Day], starts: list[datetime]) -> None:
    calls = _made_here(ModelCall)
    replies = calls.filter(purpose=ModelCall.Purpose.REPLY, error="")
    steps = _as_integer(F("total_ms") / STEP_MS)
    for n, value, rows in _by_day(replies, starts, steps).annotate(Count("pk")):
        days[n].times[value] = rows
    billed = billed_tokens()
    names = ("billed_read", "billed_written", "billed_cached", "billed_extra")
    sums = {"rows": Count("pk"), **{f"sum_{name}": Sum(billed[name]) for name in names}}
    for n, model, *found in _by_day(calls, starts, "model").annotate(**sums):
        days[n].add_requests(model, *found)


def find_percentile(counts: Counter[int], percent: int) -> float | None:
    """Return the nearest rank, or for the median the mean of the two middle ones.

    None if there are no values.
    """
    size = counts.total()
    if not size:
        return None
    values = sorted(counts)
    ends = list(accumulate(counts[value] for value in values))
    lower = values[bisect_left(ends, ceil(size * percent / 100))]
    if percent != MEDIAN:
        return lower
    return (lower + values[bisect_left(ends, size // 2 + 1)]) / 2
