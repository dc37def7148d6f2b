"""The map of a conversation: message numbers from left to right, and a bar for what
each version stands for. Coordinates are texts, so that no language's way to write
numbers gets into the SVG.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memory.models import Summary

from .. import labels
from .links import timeline_url

WIDTH, LEFT, RIGHT = 1000, 120, 988
TOP, ROW, BAR = 24, 24, 16
# A bar that is narrower has no room for its name.
NAMED = 34
LEAST = 3
TICKS = 8
# The looks that levels have; higher ones share the last.
LEVELS = 3


# What the looks mean, for the legend.
LEGEND = (
    ("step-active step-level-0", gettext_lazy("in force")),
    ("step-superseded step-level-0", gettext_lazy("superseded")),
    (
        "step-stale step-level-0",
        gettext_lazy("stale or erased: its messages have changed"),
    ),
    ("step-failed", gettext_lazy("failed or rejected")),
    ("step-active step-level-1", gettext_lazy("level 1 and above: stronger")),
    ("step-window", gettext_lazy("window, word for word")),
    ("step-active step-level-0 step-shown", gettext_lazy("shown below")),
)


@dataclass(frozen=True, slots=True)
class Bar:
    x: str
    y: str
    width: str
    kind: str  # classes: of the status, of the level, and of the shown one
    tip: str
    name: str = ""
    url: str = ""

    @property
    def is_shown(self) -> bool:
        return "step-shown" in self.kind

    @property
    def is_stale(self) -> bool:
        return "step-stale" in self.kind


@dataclass(frozen=True, slots=True)
class Name:
    """The words before a row."""

    y: str
    text: str
    shown: bool = False


@dataclass(frozen=True, slots=True)
class Tick:
    x: str
    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    height: str
    bars: Sequence[Bar]
    names: Sequence[Name]
    ticks: Sequence[Tick]
    width: str = str(WIDTH)
    floor: str = ""

    @property
    def is_empty(self) -> bool:
        return not self.bars


class _Pen:
    """Turns message numbers and rows into places."""

    def __init__(self, newest: int, shown: int) -> None:
        self.newest, self.shown = max(newest, 1), shown

    def x(self, seq: int) -> int:
        return LEFT + (seq - 1) * (RIGHT - LEFT) // self.newest

    def ticks(self) -> list[Tick]:
        step = _round(self.newest / TICKS)
        seqs = [1, *range(step, self.newest + 1, step)] if step > 1 else [1]
        seqs = seqs if step > 1 else range(1, self.newest + 1)
        return [Tick(str(self.x(seq)), f"#{seq}") for seq in seqs]

    def bar(self, row: Summary, line: int, conversation: int) -> Bar:
        start, end = self.x(row.first_seq), self.x(row.last_seq + 1)
        is_erased = row.status == Summary.Status.ERASED
        look = Summary.Status.STALE if is_erased else row.status
        kinds = [f"step-{look}", f"step-level-{min(row.level, LEVELS)}"]
        kinds += ["step-shown"] if row.version == self.shown else []
        width = max(LEAST, min(end, RIGHT) - start)
        return Bar(
            x=str(start),
            y=str(TOP + line * ROW),
            width=str(width),
            kind=" ".join(kinds),
            tip=_tip(row),
            name=f"v{row.version}" if width >= NAMED else "",
            url=timeline_url(conversation, v=row.version),
        )

    def picture(self, bars: list[Bar], names: list[Name]) -> Picture:
        height = TOP + len(names) * ROW
        return Picture(str(height + 4), bars, names, self.ticks(), floor=str(height))


def _round(step: float) -> int:
    """The next of 1, 2, 5, 10, 20, 50..."""
    size = 1
    while size * 10 <= step:
        size *= 10
    return next(size * n for n in (1, 2, 5, 10) if size * n >= step)


def _tip(row: Summary) -> str:
    words = _("v%(version)s, level %(level)s, messages %(span)s, %(status)s")
    return words % {
        "version": row.version,
        "level": row.level,
        "span": labels.span(row),
        "status": row.get_status_display(),
    }


def _middle(line: int) -> str:
    return str(TOP + line * ROW + BAR - 4)


def of_versions(
    conversation: int, rows: Iterable[Summary], newest: int, shown: int
) -> Picture:
    """One row for each version, in their order."""
    pen, bars, names = _Pen(newest, shown), [], []
    for line, row in enumerate(rows):
        bars.append(pen.bar(row, line, conversation))
        text = _("v%(version)s · level %(level)s")
        values = {"version": row.version, "level": row.level}
        names.append(Name(_middle(line), text % values, row.version == shown))
    return pen.picture(bars, names)


def of_levels(
    conversation: int, rows: Sequence[Summary], newest: int, shown: int
) -> Picture:
    """What stands for which messages now: a row for each level, then the window."""
    pen, bars, names = _Pen(newest, shown), [], []
    by_level = sorted(rows, key=lambda row: (-row.level, row.first_seq))
    for line, (level, group) in enumerate(groupby(by_level, lambda row: row.level)):
        bars += [pen.bar(row, line, conversation) for row in group]
        names.append(Name(_middle(line), _("level %(level)s") % {"level": level}))
    start = max((row.last_seq for row in rows), default=0) + 1
    if start <= newest:
        bars.append(_window(pen, start, len(names)))
        names.append(Name(_middle(len(names)), _("window")))
    return pen.picture(bars, names)


def _window(pen: _Pen, start: int, line: int) -> Bar:
    words = _("window, word for word: messages %(span)s")
    x = pen.x(start)
    return Bar(
        x=str(x),
        y=str(TOP + line * ROW),
        width=str(max(LEAST, RIGHT - x)),
        kind="step-window",
        tip=words % {"span": f"#{start}–#{pen.newest}"},
    )
