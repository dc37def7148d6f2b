"""What happened on the site in a range of days: numbers alone, by queries that an index
over the day answers.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date
from functools import partial

from django.contrib.auth import get_user_model
from django.core.cache import cache
from django.db.models import (
    BigIntegerField,
    Case,
    Count,
    F,
    Q,
    QuerySet,
    Sum,
    When,
    Window,
)
from django.db.models.functions import Coalesce, Lag

from chatsite.turns.models import Turn
from memory.compaction import compactor
from memory.models import Conversation, ModelCall, Summary

from ..models import Experiment
from .counting import STEP_MS, Counts, count, median_share, p95_ms
from .days import Days

OLD_SECONDS, NEW_SECONDS = 600, 60
UNDONE = (Summary.Status.FAILED, Summary.Status.REJECTED)
# Versions that a person wrote or brought back: nothing was compacted.
BY_HAND = ("edit", "restore")
FAILING = (Turn.State.FAILED, Turn.State.TRUNCATED, Turn.State.INTERRUPTED)


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
    """What one person spent with one model; an experiment is its starter's."""

    user: str
    model: str
    is_experiment: bool
    requests: int
    read: int
    written: int

    @property
    def tokens(self) -> int:
        return self.read + self.written

    def __add__(self, other: "Spending") -> "Spending":
        return replace(
            self,
            requests=self.requests + other.requests,
            read=self.read + other.read,
            written=self.written + other.written,
        )


@dataclass(frozen=True, slots=True)
class Part:
    """What happened on some days; parts of other days can be added."""

    compactions: dict[date, tuple[int, int]]  # made and failed
    ratios: Counts
    times: dict[str, Counts]
    spending: tuple[Spending, ...]
    failing_turns: int

    def __add__(self, other: "Part") -> "Part":
        return Part(
            compactions=self.compactions | other.compactions,
            ratios=Counts(self.ratios | other.ratios),
            times={
                name: Counts(each | other.times[name])
                for name, each in self.times.items()
            },
            spending=_add_up([*self.spending, *other.spending]),
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
            key = f"desk-figures-{span.first}-{span.last}"
            found = cache.get_or_set(key, partial(read, span), seconds)
            part = part + found if part else found
    gaps = cache.get_or_set("desk-gaps", _count_gaps, OLD_SECONDS)
    return _figures(days, part, gaps)


def measure(days: Days) -> SiteFigures:
    return _figures(days, read(days), _count_gaps())


def _figures(days: Days, part: Part, gaps: int) -> SiteFigures:
    stopped = Conversation.objects.filter(
        compaction_failures__gte=compactor.MAX_FAILURES, deleted_at=None
    )
    return SiteFigures(
        days=tuple(_day(day, part) for day in days),
        ratio=median_share(part.ratios.total()),
        reply_ms=p95_ms(part.times["reply_ms"].total()),
        spending=part.spending,
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


def read(days: Days) -> Part:
    compactions, calls = _compactions(days), _calls(days)
    made = compactions.exclude(status__in=UNDONE)
    replies = calls.filter(purpose=ModelCall.Purpose.REPLY, error="")
    left = made.filter(tokens_before__gt=0)
    first = replies.exclude(first_token_ms=None)
    return Part(
        compactions=_count_compactions(compactions, days),
        ratios=count(left, days, F("tokens_after") * 1000 / F("tokens_before")),
        times={
            "reply_ms": count(replies, days, F("total_ms") / STEP_MS),
            "first_ms": count(first, days, F("first_token_ms") / STEP_MS),
            "compaction_ms": count(made, days, F("ms") / STEP_MS),
        },
        spending=(*_spending(calls), *_experiments(days)),
        failing_turns=Turn.objects.filter(
            days.during("created_at"), state__in=FAILING
        ).count(),
    )


def _compactions(days: Days) -> QuerySet[Summary]:
    """Made here: a branch or an import brings older ones along."""
    rows = Summary.objects.filter(
        days.during("created_at"), created_at__gte=F("conversation__created_at")
    )
    return rows.exclude(trigger_kind__in=BY_HAND).order_by()


def _calls(days: Days) -> QuerySet[ModelCall]:
    rows = ModelCall.objects.filter(
        days.during("created_at"), created_at__gte=F("conversation__created_at")
    )
    return rows.order_by()


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
    people = calls.values("conversation__owner", "model")
    rows = people.annotate(
        requests=Count("pk"), sum_read=Sum(read), sum_written=Sum(written)
    )
    names = _names({row["conversation__owner"] for row in rows})
    return [
        Spending(
            user=names[row["conversation__owner"]],
            model=row["model"],
            is_experiment=False,
            requests=row["requests"],
            read=row["sum_read"],
            written=row["sum_written"],
        )
        for row in rows
    ]


def _add_up(spending: Iterable[Spending]) -> tuple[Spending, ...]:
    """One row for each person and model."""
    found: dict[tuple[str, str, bool], Spending] = {}
    for each in spending:
        key = (each.user, each.model, each.is_experiment)
        found[key] = found[key] + each if key in found else each
    return tuple(found.values())


def _names(ids: set[int]) -> dict[int, str]:
    users = get_user_model()
    rows = users._default_manager.filter(pk__in=ids)
    return dict(rows.values_list("pk", users.USERNAME_FIELD))


def _experiments(days: Days) -> list[Spending]:
    rows = Experiment.objects.filter(days.during("created_at")).order_by()
    sums = rows.values("user__username", "model").annotate(
        sum_requests=Sum("requests"),
        sum_read=Sum("tokens_in"),
        sum_written=Sum("tokens_out"),
    )
    return [
        Spending(
            user=row["user__username"] or "–",
            model=row["model"],
            is_experiment=True,
            requests=row["sum_requests"],
            read=row["sum_read"],
            written=row["sum_written"],
        )
        for row in sums
        if row["sum_requests"]
    ]


def _count_gaps() -> int:
    """Conversations whose active summaries leave messages out, or take some twice."""
    before = Window(
        Lag("last_seq", default=0),
        partition_by="conversation_id",
        order_by=F("first_seq").asc(),
    )
    rows = Summary.objects.filter(status=Summary.Status.ACTIVE).order_by()
    wrong = rows.annotate(end=before).filter(~Q(first_seq=F("end") + 1))
    return len(set(wrong.values_list("conversation_id", flat=True)))
