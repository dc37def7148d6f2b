"""The dashboard on the admin's first page: nine tiles, and a table of the last days."""

from dataclasses import dataclass
from datetime import date
from typing import Self

from django.urls import reverse
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chatsite.llm.pricing import format_dollars, has_prices

from .charts.drawing import ChartTable, format_percent, to_digits
from .site_figures import Day, SiteFigures, read_figures

CHOICES = (7, 30, 90)
DEFAULT_DAYS = 30


@dataclass(frozen=True, slots=True)
class Tile:
    """One number with its name; `url` leads to the rows behind it."""

    label: str
    value: str
    note: str = ""
    url: str = ""
    is_bad: bool = False

    @classmethod
    def of_count(cls, label: str, count: int, note: str = "", url: str = "") -> Self:
        return cls(capfirst(label), to_digits(count), note, url)

    @classmethod
    def of_trouble(cls, label: str, count: int, note: str = "", url: str = "") -> Self:
        return cls(capfirst(label), to_digits(count), note, url, is_bad=count > 0)


@dataclass(frozen=True, slots=True)
class Dashboard:
    title: str
    # The number of days, its name, and whether it is shown.
    choices: list[tuple[int, str, bool]]
    tiles: list[Tile]
    table: ChartTable


def build_dashboard(asked: str) -> Dashboard:
    """`asked`: the number of days in the address; what is no choice is the default."""
    count = int(asked) if asked in map(str, CHOICES) else DEFAULT_DAYS
    figures = read_figures(count)
    names = {
        each: ngettext("%(days)s day", "%(days)s days", each) % {"days": each}
        for each in CHOICES
    }
    return Dashboard(
        title=_("The site in the last %(days)s days") % {"days": count},
        choices=[(each, name, each == count) for each, name in names.items()],
        tiles=_make_tiles(figures),
        table=_make_table(figures),
    )


def _make_tiles(figures: SiteFigures) -> list[Tile]:
    total, failing = figures.total, figures.total.failing_turns
    failed, tokens = total.failed_summaries, total.read + total.written
    share = format_percent(failed / (total.summaries + failed)) if failed else ""
    stopped = _("Conversations where summarising stopped")
    gaps = _("Conversations with gaps in their summaries")
    stopped_url = f"{_url_of('memory_conversation')}?compaction=stopped"
    return [
        Tile.of_count(_("summaries"), total.summaries, url=_url_of("memory_summary")),
        Tile.of_trouble(_("failed summaries"), failed, share),
        Tile(_("Size after summarising (median)"), format_percent(total.size)),
        Tile(_("p95 reply time"), _format_seconds(total.reply_ms)),
        Tile.of_count(_("Requests"), total.requests, url=_url_of("memory_modelcall")),
        Tile.of_count(_("tokens"), tokens, _format_dollars(total)),
        Tile.of_trouble(_("failed turns"), failing, url=_url_of("chat_turn")),
        Tile.of_trouble(stopped, figures.stopped, _("now"), stopped_url),
        Tile.of_trouble(gaps, figures.gaps, _("now")),
    ]


def _url_of(table: str) -> str:
    return reverse(f"admin:{table}_changelist")


def _make_table(figures: SiteFigures) -> ChartTable:
    head = (
        *(_("Day"), capfirst(_("summaries")), capfirst(_("failed summaries"))),
        *(_("Size after summarising (median)"), _("p95 reply time")),
        *(capfirst(_("failed turns")), _("Requests")),
        *(_("Tokens read"), _("Tokens written")),
        *((capfirst(_("cost")),) if has_prices() else ()),
    )
    latest_first = reversed(figures.days.items())
    # A day on which nothing happened says nothing.
    rows = (_make_cells(at, day) for at, day in latest_first if day != Day())
    return ChartTable(head, tuple(rows))


def _make_cells(when: date, day: Day) -> tuple[str, ...]:
    numbers = (day.failing_turns, day.requests, day.read, day.written)
    return (
        *(when.isoformat(), to_digits(day.summaries), to_digits(day.failed_summaries)),
        *(format_percent(day.size), _format_seconds(day.reply_ms)),
        *map(to_digits, numbers),
        *((_format_dollars(day),) if has_prices() else ()),
    )


def _format_seconds(ms: float | None) -> str:
    return "–" if ms is None else _("%(n)s s") % {"n": to_digits(ms / 1000)}


def _format_dollars(day: Day) -> str:
    return format_dollars(day.dollars) if has_prices() else ""
