"""A chart as plain values: what its template needs, and nothing that it must compute.

Coordinates are texts, so that no language's way to write numbers gets into the SVG.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Series:
    """Values over the places of a chart; None: nothing is known there.

    `kind` names its look in the style sheet; `mark` the shape of its points, so that
    no line is told from another by its colour alone.
    """

    kind: str
    label: str
    values: Sequence[float | None]
    mark: str = "round"


@dataclass(frozen=True, slots=True)
class Tick:
    at: str
    text: str


@dataclass(frozen=True, slots=True)
class Dot:
    x: str
    y: str
    tip: str


@dataclass(frozen=True, slots=True)
class Line:
    kind: str
    mark: str
    path: str
    dots: tuple[Dot, ...] = ()


@dataclass(frozen=True, slots=True)
class Bar:
    kind: str
    x: str
    y: str
    width: str
    height: str
    tip: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened at a place; `x` is between two of them."""

    x: str
    tip: str


@dataclass(frozen=True, slots=True)
class Key:
    """One entry of the legend: `shape` is line, bar, mark or level."""

    kind: str
    label: str
    shape: str = "line"
    mark: str = "round"


@dataclass(frozen=True, slots=True)
class Row:
    """A bar that lies, with its name before and its number behind it."""

    name: str
    text: str
    y: str
    end: str
    bar: Bar


@dataclass(frozen=True, slots=True)
class Table:
    """The numbers of a chart to be read, heard or copied."""

    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Plot:
    """The field inside the axes."""

    left: int
    top: int
    right: int
    bottom: int

    @property
    def width(self) -> int:
        return self.right - self.left

    @property
    def height(self) -> int:
        return self.bottom - self.top


@dataclass(frozen=True, slots=True)
class Chart:
    """One picture; where there is nothing to draw, `words` says so in its place."""

    name: str
    title: str
    description: str = ""
    words: str = ""
    width: int = 0
    height: int = 0
    plot: Plot = field(default_factory=lambda: Plot(0, 0, 0, 0))
    x_label: str = ""
    y_label: str = ""
    x_ticks: tuple[Tick, ...] = ()
    y_ticks: tuple[Tick, ...] = ()
    lines: tuple[Line, ...] = ()
    bars: tuple[Bar, ...] = ()
    rows: tuple[Row, ...] = ()
    marks: tuple[Mark, ...] = ()
    level: Tick | None = None
    keys: tuple[Key, ...] = ()
    table: Table = field(default_factory=Table)
