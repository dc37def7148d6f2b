"""From values to charts: plain functions that know neither tables nor requests."""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from .model import (
    Bar,
    Chart,
    Dot,
    Key,
    Line,
    Mark,
    Plot,
    Row,
    Series,
    Table,
    Tick,
)
from .scale import at, find_ticks, show, spread

SMALL, WIDE = (420, 220), (860, 320)
LEFT, TOP, RIGHT, BOTTOM = 62, 26, 14, 40
# Points with a shape of their own; more would only thicken the line.
MAX_DOTS = 62
LABEL_WIDTH = 62
# Of the bars that lie.
NAME_WIDTH, NUMBER_WIDTH, ROW_HEIGHT, BAR_HEIGHT = 150, 92, 26, 14
MAX_NAME = 22


class Field:
    """Where the values of a chart stand in its picture."""

    def __init__(
        self, size: tuple[int, int], count: int, top: float, *, whole: bool
    ) -> None:
        self.width, self.height = width, height = size
        self.plot = Plot(LEFT, TOP, width - RIGHT, height - BOTTOM)
        self.count = count
        self.ticks = find_ticks(top, whole=whole)

    def x(self, place: float) -> float:
        return self.plot.left + (place + 0.5) * self.plot.width / self.count

    def y(self, value: float) -> float:
        return self.plot.bottom - value / self.ticks[-1] * self.plot.height

    def x_ticks(self, labels: Sequence[str]) -> tuple[Tick, ...]:
        places = spread(self.count, max(2, self.plot.width // LABEL_WIDTH))
        return tuple(Tick(at(self.x(n)), labels[n]) for n in places)

    def y_ticks(self) -> tuple[Tick, ...]:
        return tuple(Tick(at(self.y(each)), show(each)) for each in self.ticks)

    def frame(self, labels: Sequence[str]) -> dict[str, Any]:
        """What is around the values, for a Chart."""
        return {
            "width": self.width,
            "height": self.height,
            "plot": self.plot,
            "x_ticks": self.x_ticks(labels),
            "y_ticks": self.y_ticks(),
        }


def draw_lines(
    name: str,
    title: str,
    description: str,
    series: Sequence[Series],
    labels: Sequence[str],
    *,
    table: Table,
    size: tuple[int, int] = SMALL,
    x_label: str = "",
    y_label: str = "",
    marks: Sequence[tuple[float, str]] = (),
    mark_label: str = "",
    level: tuple[float, str] | None = None,
    whole: bool = True,
) -> Chart:
    """Lines over places that are equally far apart. `marks`: place and words of what
    happened there; `level`: a value that all lines are read against."""
    highest = [value for each in series for value in each.values if value is not None]
    top = max([*highest, level[0] if level else 0], default=0)
    field = Field(size, len(labels), top, whole=whole)
    keys = [Key(each.kind, each.label, "line", each.mark) for each in series]
    keys += [Key("mark", mark_label, "mark")] if marks else []
    keys += [Key("level", level[1], "level")] if level else []
    return Chart(
        name=name,
        title=title,
        description=description,
        x_label=x_label,
        y_label=y_label,
        **field.frame(labels),
        lines=tuple(_line(each, labels, field) for each in series),
        marks=tuple(Mark(at(field.x(place)), tip) for place, tip in marks),
        level=Tick(at(field.y(level[0])), level[1]) if level else None,
        keys=tuple(keys),
        table=table,
    )


def _line(series: Series, labels: Sequence[str], field: Field) -> Line:
    known = [(n, v) for n, v in enumerate(series.values) if v is not None]
    dots = known if len(known) <= MAX_DOTS else ()
    return Line(
        kind=series.kind,
        mark=series.mark,
        path=" ".join(_steps(series.values, field)),
        dots=tuple(
            Dot(
                at(field.x(n)),
                at(field.y(value)),
                f"{labels[n]}: {show(value)}, {series.label}",
            )
            for n, value in dots
        ),
    )


def _steps(values: Sequence[float | None], field: Field) -> Iterator[str]:
    """The commands of an SVG path; it is broken where nothing is known."""
    goes_on = False
    for place, value in enumerate(values):
        if value is not None:
            command = "L" if goes_on else "M"
            yield f"{command}{at(field.x(place))} {at(field.y(value))}"
        goes_on = value is not None


def draw_bars(
    name: str,
    title: str,
    description: str,
    series: Sequence[Series],
    labels: Sequence[str],
    *,
    table: Table,
    size: tuple[int, int] = SMALL,
    x_label: str = "",
    y_label: str = "",
) -> Chart:
    """One bar for each place, made of the series from the bottom up."""
    piles = list(zip(*(each.values for each in series), strict=True))
    field = Field(size, len(labels), max(map(sum, piles), default=0), whole=True)
    bars = (
        bar for n, pile in enumerate(piles) for bar in _pile(n, pile, series, field)
    )
    return Chart(
        name=name,
        title=title,
        description=description,
        x_label=x_label,
        y_label=y_label,
        **field.frame(labels),
        bars=tuple(bars),
        keys=tuple(Key(each.kind, each.label, "bar") for each in series),
        table=table,
    )


def _pile(
    place: int, values: Sequence[float], series: Sequence[Series], field: Field
) -> Iterator[Bar]:
    width = min(28, field.plot.width / field.count * 0.7)
    tops = list(accumulate(values))
    for each, value, top in zip(series, values, tops, strict=True):
        if value:
            yield Bar(
                kind=each.kind,
                x=at(field.x(place) - width / 2),
                y=at(field.y(top)),
                width=at(width),
                height=at(field.y(top - value) - field.y(top)),
                tip=f"{show(value)}, {each.label}",
            )


def draw_rows(
    name: str,
    title: str,
    description: str,
    rows: Sequence[tuple[str, float, str]],
    *,
    table: Table,
    width: int = SMALL[0],
) -> Chart:
    """A lying bar for each (name, value, the value in words), longest scale for all."""
    room = width - NAME_WIDTH - NUMBER_WIDTH
    largest = max((value for _, value, _ in rows), default=0) or 1
    return Chart(
        name=name,
        title=title,
        description=description,
        width=width,
        height=len(rows) * ROW_HEIGHT + 8,
        plot=Plot(NAME_WIDTH, 4, width - NUMBER_WIDTH, len(rows) * ROW_HEIGHT + 4),
        rows=tuple(_row(n, row, room * row[1] / largest) for n, row in enumerate(rows)),
        table=table,
    )


def _row(place: int, row: tuple[str, float, str], length: float) -> Row:
    name, _, text = row
    top = place * ROW_HEIGHT + 4 + (ROW_HEIGHT - BAR_HEIGHT) / 2
    bar = Bar(
        kind="main",
        x=at(NAME_WIDTH),
        y=at(top),
        width=at(length),
        height=at(BAR_HEIGHT),
        tip=f"{name}: {text}",
    )
    short = name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"
    end = at(NAME_WIDTH + length)
    return Row(short, text, at(top + BAR_HEIGHT - 2.5), end, bar)


def say(name: str, title: str, words: str) -> Chart:
    """In place of a picture of nothing."""
    return Chart(name=name, title=title, words=words)
