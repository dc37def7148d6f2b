"""The dashboard on the admin's first page: the site in tiles and charts."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chatsite.llm import providers

from . import site_metrics
from .days import CHOICES, Days, DaysForm
from .drawing import (
    Chart,
    Series,
    Table,
    draw_bars,
    draw_lines,
    draw_rows,
    percent,
    show,
)
from .site_metrics import SiteFigures, Spending

# Further people and models are one bar together.
MAX_BARS = 6


@dataclass(frozen=True, slots=True)
class Tile:
    """One number with its name; `url` leads to the rows behind it."""

    label: str
    value: str
    note: str = ""
    url: str = ""
    is_bad: bool = False


@dataclass(frozen=True, slots=True)
class Dashboard:
    form: DaysForm
    days: Days
    choices: list[tuple[Days, str, bool]]
    tiles: list[Tile]
    charts: list[Chart]
    tables: list[Chart]


def build(form: DaysForm, days: Days) -> Dashboard:
    figures = site_metrics.of(days)
    choices = []
    for count in CHOICES:
        name = ngettext("%(days)s day", "%(days)s days", count) % {"days": count}
        each = Days.until_today(count)
        choices.append((each, name, each == days))
    return Dashboard(
        form=form,
        days=days,
        choices=choices,
        tiles=_tiles(figures),
        charts=[
            _compactions(figures, days),
            _ratios(figures, days),
            _latency(figures, days),
            _bars("people", _("Tokens by person"), figures.spending, lambda s: s.user),
            _bars(
                "models",
                _("Tokens by model"),
                figures.spending,
                lambda s: providers.label(s.model) or _("not known"),
            ),
        ],
        tables=[_spending_table(figures)],
    )


def _tiles(figures: SiteFigures) -> list[Tile]:
    made = sum(day.compactions for day in figures.days)
    failed = sum(day.failed for day in figures.days)
    conversations = reverse("admin:memory_conversation_changelist")
    return [
        Tile(
            _("Summaries"), show(made), url=reverse("admin:memory_summary_changelist")
        ),
        Tile(
            _("Failed summaries"),
            show(failed),
            percent(failed / (made + failed)) if failed else "",
            is_bad=failed > 0,
        ),
        Tile(_("Size after summarising (median)"), percent(figures.ratio)),
        Tile(_("p95 reply time"), _seconds(figures.reply_ms)),
        Tile(_("Tokens"), show(_tokens(figures.spending)), _money(figures.spending)),
        Tile(
            _("Turns that failed"),
            show(figures.failing_turns),
            url=reverse("admin:chat_turn_changelist"),
            is_bad=figures.failing_turns > 0,
        ),
        Tile(
            _("Conversations where summarising stopped"),
            show(figures.stopped),
            _("now"),
            f"{conversations}?compaction=stopped",
            figures.stopped > 0,
        ),
        Tile(
            _("Conversations with gaps in their summaries"),
            show(figures.gaps),
            _("now"),
            is_bad=figures.gaps > 0,
        ),
    ]


def _seconds(ms: float | None) -> str:
    return "–" if ms is None else _("%(n)s s") % {"n": show(ms / 1000)}


def _tokens(rows: Sequence[Spending]) -> int:
    return sum(each.tokens for each in rows)


def _money(spending: Sequence[Spending]) -> str:
    """In dollars, where the site knows its prices; the demo model costs nothing."""
    if not settings.PRICE_INPUT:
        return ""
    paid = [each for each in spending if not providers.is_demo(each.model)]
    cost = sum(
        each.read * settings.PRICE_INPUT + each.written * settings.PRICE_OUTPUT
        for each in paid
    )
    return f"${cost / 1_000_000:,.2f}"


def _compactions(figures: SiteFigures, days: Days) -> Chart:
    name, title = "compactions", _("Summaries per day")
    made = [day.compactions for day in figures.days]
    failed = [day.failed for day in figures.days]
    if not sum(made) + sum(failed):
        return Chart(name, title, message=_("Nothing was summarised in these days."))
    return draw_bars(
        name,
        title,
        _("Summaries: %(made)s; failed: %(failed)s; at most %(most)s on a day.")
        % {
            "made": show(sum(made)),
            "failed": show(sum(failed)),
            "most": show(max(map(sum, zip(made, failed, strict=True)))),
        },
        [Series("main", _("summarised"), made), Series("bad", _("failed"), failed)],
        days.labels(),
        table=_by_day(
            days,
            (_("Summarised"), map(show, made)),
            (_("Failed"), map(show, failed)),
        ),
    )


def _by_day(days: Days, *columns: tuple[str, Iterable[str]]) -> Table:
    dates = (day.isoformat() for day in days)
    return Table(
        (_("Day"), *(label for label, _values in columns)),
        tuple(zip(dates, *(values for _label, values in columns), strict=True)),
    )


def _ratios(figures: SiteFigures, days: Days) -> Chart:
    name, title = "ratios", _("Size after summarising")
    ratios = [day.ratio for day in figures.days]
    if all(ratio is None for ratio in ratios):
        return Chart(name, title, message=_("No summary to measure in these days."))
    values = [None if ratio is None else 100 * ratio for ratio in ratios]
    return draw_lines(
        name,
        title,
        _("After a summary the context has %(ratio)s of its tokens (median).")
        % {"ratio": percent(figures.ratio)},
        [Series("main", _("median of the day"), values)],
        days.labels(),
        # xgettext:no-python-format
        y_label=_("% of the tokens"),
        table=_by_day(days, (_("Median"), map(percent, ratios))),
    )


def _latency(figures: SiteFigures, days: Days) -> Chart:
    name, title = "latency", _("Latency (p95)")
    measured = (
        ("main", _("whole reply"), "reply_ms", "round"),
        ("second", _("time to first token"), "first_ms", "square"),
        ("third", _("summary"), "compaction_ms", "diamond"),
    )
    series, columns = [], []
    for kind, label, field, mark in measured:
        values = [getattr(day, field) for day in figures.days]
        seconds = [None if ms is None else ms / 1000 for ms in values]
        series.append(Series(kind, label, seconds, mark))
        columns.append((label, map(_seconds, values)))
    if all(value is None for each in series for value in each.values):
        return Chart(name, title, message=_("No reply and no summary in these days."))
    return draw_lines(
        name,
        title,
        _("95 %% of replies finished within %(time)s.")
        % {"time": _seconds(figures.reply_ms)},
        series,
        days.labels(),
        y_label=_("seconds"),
        whole=False,
        table=_by_day(days, *columns),
    )


def _bars(
    name: str,
    title: str,
    spending: Sequence[Spending],
    group: Callable[[Spending], str],
) -> Chart:
    """The largest ones, and the others together."""
    found: dict[str, list[Spending]] = {}
    for each in spending:
        found.setdefault(group(each), []).append(each)
    if not found:
        return Chart(name, title, message=_("No request to a model in these days."))
    sums = sorted(found.items(), key=lambda item: -_tokens(item[1]))
    shown = sums[:MAX_BARS]
    if others := sums[MAX_BARS:]:
        label = ngettext("%(n)s other", "%(n)s others", len(others))
        rest = [each for _label, rows in others for each in rows]
        shown.append((label % {"n": len(others)}, rest))
    bars = []
    for label, rows in shown:
        words = " · ".join(filter(None, (show(_tokens(rows)), _money(rows))))
        bars.append((label, _tokens(rows), words))
    return draw_rows(
        name,
        title,
        _("%(tokens)s tokens in total.") % {"tokens": show(_tokens(spending))},
        bars,
        table=Table(
            (title, _("Tokens")),
            tuple((label, show(_tokens(rows))) for label, rows in sums),
        ),
    )


def _spending_table(figures: SiteFigures) -> Chart:
    """Who spent what with which model."""
    head = [_("Person"), _("Model"), _("Requests"), _("Read"), _("Written")]
    head += [_("Cost")] if settings.PRICE_INPUT else []
    rows = []
    for each in sorted(figures.spending, key=lambda each: -each.tokens):
        user = f"{each.user}, {each.use}" if each.use else each.user
        row = [user, providers.label(each.model)]
        row += map(show, (each.requests, each.read, each.written))
        rows.append((*row, _money([each])) if settings.PRICE_INPUT else tuple(row))
    return Chart(
        name="spending",
        title=_("Spending by person and model"),
        table=Table(tuple(head), tuple(rows)),
    )
