"""The strip on the admin's first page: the figures of the site as tiles and charts."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chatsite.llm import providers

from . import site_metrics
from .days import CHOICES, Days, DaysForm
from .drawing import draw_bars, draw_lines, draw_rows, say
from .model import Chart, Series, Table
from .scale import show
from .site_metrics import Day, SiteFigures, Spending

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
class Strip:
    form: DaysForm
    days: Days
    choices: tuple[tuple[Days, str, bool], ...]
    tiles: tuple[Tile, ...]
    charts: tuple[Chart, ...]
    spending: Chart


def build(form: DaysForm, days: Days) -> Strip:
    figures = site_metrics.of(days)
    ranges = [(Days.until_today(count), _name(count)) for count in CHOICES]
    return Strip(
        form=form,
        days=days,
        choices=tuple((each, name, each == days) for each, name in ranges),
        tiles=tuple(_tiles(figures)),
        charts=(
            _compactions(figures, days),
            _ratios(figures, days),
            _latency(figures, days),
            _by_person(figures),
            _by_model(figures),
        ),
        spending=_table(figures),
    )


def _name(days: int) -> str:
    return ngettext("%(days)s day", "%(days)s days", days) % {"days": days}


def _tiles(figures: SiteFigures) -> Iterable[Tile]:
    compactions = sum(day.compactions for day in figures.days)
    failed = sum(day.failed for day in figures.days)
    yield Tile(_("Summaries"), show(compactions), url=_list("memory_summary"))
    yield Tile(
        _("Summaries that failed"),
        show(failed),
        _share(failed, compactions + failed),
        is_bad=failed > 0,
    )
    yield Tile(_("Median of what a summary leaves"), _percent(figures.ratio))
    # xgettext:no-python-format
    yield Tile(_("95 % of replies within"), _seconds(figures.reply_ms))
    tokens = sum(each.tokens for each in figures.spending)
    yield Tile(_("Tokens"), show(tokens), _money(figures.spending))
    yield Tile(
        _("Turns that failed"),
        show(figures.failing_turns),
        url=_list("chat_turn"),
        is_bad=figures.failing_turns > 0,
    )
    yield Tile(
        _("Conversations that are no longer summarised"),
        show(figures.stopped),
        _("now"),
        _list("memory_conversation") + "?compaction=stopped",
        figures.stopped > 0,
    )
    yield Tile(
        _("Conversations with gaps in their summaries"),
        show(figures.gaps),
        _("now"),
        is_bad=figures.gaps > 0,
    )


def _list(name: str) -> str:
    return reverse(f"admin:{name}_changelist")


def _share(part: int, whole: int) -> str:
    return _percent(part / whole) if whole else ""


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}".replace("%", "\u00a0%")


def _seconds(ms: float | None) -> str:
    return show(None if ms is None else ms / 1000, "s")


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
        return say(name, title, _("Nothing was summarised in these days."))
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
            figures,
            days,
            (_("Summarised"), lambda day: show(day.compactions)),
            (_("Failed"), lambda day: show(day.failed)),
        ),
    )


def _by_day(
    figures: SiteFigures, days: Days, *columns: tuple[str, Callable[[Day], str]]
) -> Table:
    rows = zip(days, figures.days, strict=True)
    return Table(
        (_("Day"), *(label for label, _read in columns)),
        tuple(
            (day.isoformat(), *(read(values) for _label, read in columns))
            for day, values in rows
        ),
    )


def _ratios(figures: SiteFigures, days: Days) -> Chart:
    name, title = "ratios", _("What a summary leaves")
    values = [None if d.ratio is None else 100 * d.ratio for d in figures.days]
    if not any(value is not None for value in values):
        return say(name, title, _("No summary to measure in these days."))
    return draw_lines(
        name,
        title,
        _("Median share of the context's tokens after a summary: %(ratio)s in all.")
        % {"ratio": _percent(figures.ratio)},
        [Series("main", _("median of the day"), values)],
        days.labels(),
        # xgettext:no-python-format
        y_label=_("% of the tokens"),
        table=_by_day(figures, days, (_("Median"), lambda d: _percent(d.ratio))),
    )


def _latency(figures: SiteFigures, days: Days) -> Chart:
    # xgettext:no-python-format
    name, title = "latency", _("Latency: 95 % are faster")
    lines = (
        ("main", _("whole reply"), "reply_ms", "round"),
        ("second", _("first words"), "first_ms", "square"),
        ("third", _("summary"), "compaction_ms", "diamond"),
    )
    series = [
        Series(kind, label, [_to_seconds(d, field) for d in figures.days], mark)
        for kind, label, field, mark in lines
    ]
    if all(value is None for each in series for value in each.values):
        return say(name, title, _("No reply and no summary in these days."))
    return draw_lines(
        name,
        title,
        _("Of 100 replies 95 were complete within %(time)s.")
        % {"time": _seconds(figures.reply_ms)},
        series,
        days.labels(),
        y_label=_("seconds"),
        whole=False,
        table=_by_day(
            figures,
            days,
            *(
                (label, lambda d, field=field: _seconds(getattr(d, field)))
                for _kind, label, field, _mark in lines
            ),
        ),
    )


def _to_seconds(day: Day, field: str) -> float | None:
    ms = getattr(day, field)
    return None if ms is None else ms / 1000


def _by_person(figures: SiteFigures) -> Chart:
    return _bars(
        "people", _("Tokens by person"), figures.spending, lambda each: each.user
    )


def _by_model(figures: SiteFigures) -> Chart:
    return _bars(
        "models",
        _("Tokens by model"),
        figures.spending,
        lambda each: providers.label(each.model) or _("not known"),
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
        return say(name, title, _("No request to a model in these days."))
    sums = [(label, _tokens(rows), _cost(rows)) for label, rows in found.items()]
    sums.sort(key=lambda row: -row[1])
    shown = sums[:MAX_BARS]
    rest = [each for label, *_sum in sums[MAX_BARS:] for each in found[label]]
    if rest:
        label = ngettext("%(n)s other", "%(n)s others", len(sums) - MAX_BARS)
        label %= {"n": len(sums) - MAX_BARS}
        shown.append((label, _tokens(rest), _cost(rest)))
    return draw_rows(
        name,
        title,
        _("%(tokens)s tokens in all.") % {"tokens": show(_tokens(spending))},
        shown,
        table=Table(
            (title, _("Tokens")), tuple((label, show(n)) for label, n, _t in sums)
        ),
    )


def _tokens(rows: Sequence[Spending]) -> int:
    return sum(each.tokens for each in rows)


def _cost(rows: Sequence[Spending]) -> str:
    return " · ".join(filter(None, (show(_tokens(rows)), _money(rows))))


def _table(figures: SiteFigures) -> Chart:
    """Who spent what with which model; an experiment of a policy is its starter's."""
    rows = sorted(figures.spending, key=lambda each: -each.tokens)
    head = (_("Person"), _("Model"), _("Requests"), _("Read"), _("Written"))
    money = (_("Cost"),) if settings.PRICE_INPUT else ()
    return Chart(
        name="spending",
        title=_("Spending by person and model"),
        table=Table(
            (*head, *money),
            tuple(
                (
                    _("%(user)s, experiments") % {"user": each.user}
                    if each.is_experiment
                    else each.user,
                    providers.label(each.model),
                    *map(show, (each.requests, each.read, each.written)),
                    *((_money([each]),) if money else ()),
                )
                for each in rows
            ),
        ),
    )
