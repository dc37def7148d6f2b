"""Charts as SVG: from values to what `_chart.html` needs. Knows no tables or requests.

Coordinates are texts, so that no language's way to write numbers gets into the SVG.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any, TypeVar

from django.utils.translation import gettext as _

WIDTH, HEIGHT = 860, 320
LEFT, TOP, RIGHT, BOTTOM = 62, 26, 14, 40
# More points than these are drawn as the largest of several neighbours.
MAX_POINTS = 400
# Points with a shape of their own; more would only thicken the line.
MAX_DOTS = 62
LABEL_WIDTH = 62

Shape = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Series:
    """The values over the places of a chart; None: unknown.

    `kind` names its look in the style sheet; `mark` is the shape of its points, so that
    lines differ not by colour alone.
    """

    kind: str
    label: str
    values: Sequence[float | None]
    mark: str = "round"


@dataclass(frozen=True, slots=True)
class ChartTable:
    """The numbers of a chart, for reading, screen readers and copying."""

    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Chart:
    """One picture; if there is nothing to draw, `message` replaces it."""

    name: str
    title: str
    description: str = ""
    message: str = ""
    plot: Any = None
    x_ticks: Sequence[Shape] = ()
    y_ticks: Sequence[Shape] = ()
    lines: Sequence[Shape] = ()
    marks: Sequence[Shape] = ()
    level: Shape | None = None
    keys: Sequence[Shape] = ()
    table: ChartTable = ChartTable()


class Plot:
    """The field inside the axes, and where values stand in it."""

    width, height = WIDTH, HEIGHT
    left, top, right, bottom = LEFT, TOP, WIDTH - RIGHT, HEIGHT - BOTTOM

    def __init__(self, labels: Sequence[str], top: float) -> None:
        self.labels = labels
        self.step = (self.right - LEFT) / len(labels)
        self.ticks = find_ticks(top)

    def x(self, place: float) -> float:
        return LEFT + (place + 0.5) * self.step

    def y(self, value: float) -> float:
        return self.bottom - value / self.ticks[-1] * (self.bottom - TOP)

    def draw_axes(self) -> dict[str, Any]:
        """Return what is drawn around the values, for a Chart."""
        count = len(self.labels)
        places = spread_places(count, max(2, (self.right - LEFT) // LABEL_WIDTH))
        return {
            "plot": self,
            "x_ticks": [
                {"at": to_svg(self.x(n)), "text": self.labels[n]} for n in places
            ],
            "y_ticks": [
                {"at": to_svg(self.y(n)), "text": to_digits(n)} for n in self.ticks
            ],
        }


def group_points(points: Sequence[T]) -> tuple[int, list[Sequence[T]], list[str]]:
    """Return the points in groups of neighbours, few enough to draw.

    With the size of a group, and the label of each: the numbers of its points, from 1.
    """
    step = ceil(len(points) / MAX_POINTS)
    groups = [points[n : n + step] for n in range(0, len(points), step)]
    ends = [(n * step + 1, n * step + len(group)) for n, group in enumerate(groups)]
    return step, groups, [f"{a}" if a == b else f"{a}–{b}" for a, b in ends]


def draw_lines(
    name: str,
    title: str,
    description: str,
    series: Sequence[Series],
    labels: Sequence[str],
    *,
    table: ChartTable,
    marks: Sequence[tuple[float, str]] = (),
    mark_label: str = "",
    level: tuple[float, str] | None = None,
) -> Chart:
    """Draw lines of tokens over turns.

    `marks`: place and words of what happened there; `level`: a value that all lines are
    read against.
    """
    highest = [value for each in series for value in each.values if value is not None]
    top = max([*highest, level[0] if level else 0], default=0)
    plot = Plot(labels, top)
    keys = [
        {"kind": each.kind, "label": each.label, "shape": "line", "mark": each.mark}
        for each in series
    ]
    keys += [{"label": mark_label, "shape": "mark"}] if marks else []
    keys += [{"label": level[1], "shape": "level"}] if level else []
    return Chart(
        name=name,
        title=title,
        description=description,
        **plot.draw_axes(),
        lines=[_draw_line(each, plot) for each in series],
        marks=[{"x": to_svg(plot.x(place)), "tip": tip} for place, tip in marks],
        level={"at": to_svg(plot.y(level[0]))} if level else None,
        keys=keys,
        table=table,
    )


def _draw_line(series: Series, plot: Plot) -> Shape:
    steps, dots, goes_on = [], [], False
    for place, value in enumerate(series.values):
        if value is not None:
            x, y = to_svg(plot.x(place)), to_svg(plot.y(value))
            # The line is broken where nothing is known.
            steps.append(f"{'L' if goes_on else 'M'}{x} {y}")
            part = f"{series.label} {to_digits(value)}"
            tip = _("%(what)s: %(part)s") % {"what": plot.labels[place], "part": part}
            dots.append({"x": x, "y": y, "tip": tip})
        goes_on = value is not None
    return {
        "kind": series.kind,
        "mark": series.mark,
        "path": " ".join(steps),
        "dots": dots if len(dots) <= MAX_DOTS else (),
    }


def find_ticks(top: float, steps: int = 4) -> list[float]:
    """Round numbers from 0 up to at least `top`, in about so many steps."""
    # What is counted has no halves.
    step = max(1, ceil(round_up(max(top, 0) / steps or 1)))
    # A hair of rounding must not add a step.
    count = max(1, ceil(top / step - 1e-9))
    return [step * n for n in range(count + 1)]


def round_up(step: float) -> float:
    """Return the next number above with one digit that is 1, 2 or 5."""
    power = 10.0 ** floor(log10(step))
    sizes = (n * power for n in (1, 2, 5, 10))
    return next(size for size in sizes if size >= step * (1 - 1e-9))


def to_digits(value: float | None) -> str:
    """Return the number with separators and without useless digits; "–" if unknown."""
    if value is None:
        return "–"
    digits = 0 if value == round(value) or abs(value) >= 100 else 2
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if digits else text


def format_percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}".replace("%", "\u00a0%")


def to_svg(value: float) -> str:
    """Return a coordinate, written the same in every language."""
    return f"{value:.1f}".removesuffix(".0")


def spread_places(count: int, most: int) -> range:
    """Return at most so many of the places 0..count-1, evenly apart."""
    return range(0, count, max(1, ceil(count / most)))
