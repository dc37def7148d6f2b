"""How many rows have which value, and the medians and percentiles in these counts.

Exact and the same on both databases: the database counts to a hundredth of a second or
a tenth of a percent, which is all that is shown; the ranks are found here.
"""

from bisect import bisect_left
from collections import Counter
from datetime import date
from itertools import accumulate
from math import ceil

from django.db.models import Count, ExpressionWrapper, IntegerField, QuerySet
from django.db.models.expressions import Combinable

from .days import Days

MEDIAN, P95 = 50, 95
# Latencies are told apart, and shown, to so many milliseconds.
STEP_MS = 10


class Counts(dict[date, Counter[int]]):
    """Of each day how many rows have which value."""

    def total(self) -> Counter[int]:
        return sum(self.values(), Counter())


def count(rows: QuerySet, days: Days, value: Combinable) -> Counts:
    whole = ExpressionWrapper(value, output_field=IntegerField())
    groups = rows.annotate(day=days.number("created_at"), value=whole)
    counted = groups.values("day", "value").annotate(count=Count("pk"))
    dates, counts = list(days), Counts()
    for day, found, count in counted.values_list("day", "value", "count"):
        counts.setdefault(dates[day], Counter())[found] = count
    return counts


def p95_ms(counts: Counter[int] | None) -> float | None:
    found = find_percentile(counts or Counter(), P95)
    return None if found is None else found * STEP_MS


def median_share(counts: Counter[int] | None) -> float | None:
    found = find_percentile(counts or Counter(), MEDIAN)
    return None if found is None else found / 1000


def find_percentile(counts: Counter[int], percent: int) -> float | None:
    """The value below or at which so many percent are: the nearest rank, and of the
    median the mean of the two middle ones. None: there are no values."""
    size = counts.total()
    if not size:
        return None
    values = sorted(counts)
    ends = list(accumulate(counts[value] for value in values))
    lower = values[bisect_left(ends, ceil(size * percent / 100))]
    if percent != MEDIAN:
        return lower
    return (lower + values[bisect_left(ends, size // 2 + 1)]) / 2
