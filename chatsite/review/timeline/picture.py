"""The map of a conversation: message numbers from left to right, bars for versions.

A bar shows the messages that a version covers. Coordinates are texts, so that no
language's number format gets into the SVG.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memory.models import Summary

from .. import labels
from ..charts.drawing import round_up
from ..pages import timeline_url

WIDTH, LEFT, RIGHT = 1000, 120, 988
TOP, ROW, BAR = 24, 24, 16
# A bar that is narrower has no room for its name.
NAMED = 34
LEAST = 3
TICKS = 8
# Levels with a look of their own; higher ones share the last.
LEVELS = 3

LEGEND = (
    ("step-active step-level-0", gettext_lazy("current")),
    ("step-superseded step-level-0", gettext_lazy("replaced")),
    (
        "step-stale step-level-0",
        gettext_lazy("out of date or erased: its messages have changed"),
    ),
    ("step-failed", gettext_lazy("failed or rejected")),
    ("step-active step-level-1", gettext_lazy("level 1 and above: stronger")),
    ("step-window", gettext_lazy("window, sent in full")),
    ("step-active step-level-0 step-shown", gettext_lazy("shown below")),
)


class SummaryMap:
    """The values for `_map.html`, row by row: bars, the names of rows, and ticks."""

    width = str(WIDTH)

    def __init__(self, conversation: int, newest: int, shown: int) -> None:
        self.conversation, self.newest, self.shown = conversation, newest, shown
        self.bars: list[dict[str, Any]] = []
        self.names: list[dict[str, Any]] = []

    @property
    def floor(self) -> str:
        return str(TOP + len(self.names) * ROW)

    @property
    def height(self) -> str:
        return str(TOP + len(self.names) * ROW + 4)

    @property
    def ticks(self) -> list[dict[str, str]]:
        step = max(1, int(round_up(self.newest / TICKS)))
        seqs = range(step, self.newest + 1, step)
        seqs = seqs if step == 1 else [1, *seqs]
        return [{"x": str(self._x(seq)), "text": f"#{seq}"} for seq in seqs]

    def _x(self, seq: int) -> int:
        return LEFT + (seq - 1) * (RIGHT - LEFT) // self.newest

    def add_row(self, text: str, summaries: Iterable[Summary] = ()) -> None:
        self.names.append({"y": str(int(self.floor) + BAR - 4), "text": text})
        for row in summaries:
            self._add_summary(row)

    def _add_summary(self, row: Summary) -> None:
        is_shown = row.version == self.shown
        is_stale = row.status in (Summary.Status.ERASED, Summary.Status.STALE)
        look = Summary.Status.STALE if is_stale else row.status
        kind = f"step-{look} step-level-{min(row.level, LEVELS)}"
        tip = _("v%(version)s, level %(level)s, messages %(span)s, %(status)s") % {
            "version": row.version,
            "level": row.level,
            "span": labels.format_span(row),
            "status": labels.name_status(row),
        }
        width = self._add_bar(
            row.first_seq,
            row.last_seq,
            kind=f"{kind} step-shown" if is_shown else kind,
            tip=tip,
            url=timeline_url(self.conversation, v=row.version),
            is_shown=is_shown,
            is_stale=is_stale,
        )
        if width >= NAMED:
            self.bars[-1]["name"] = f"v{row.version}"

    def add_window(self, start: int) -> None:
        self.add_row(_("window"))
        tip = _("window, sent in full: messages %(span)s")
        tip %= {"span": f"#{start}–#{self.newest}"}
        self._add_bar(start, self.newest, kind="step-window", tip=tip)

    def _add_bar(self, first: int, last: int, **values: Any) -> int:
        """Add a bar to the last row; returns how wide it is."""
        x = self._x(first)
        width = max(LEAST, min(self._x(last + 1), RIGHT) - x)
        y = int(self.floor) - ROW
        self.bars.append({"x": str(x), "y": str(y), "width": str(width), **values})
        return width


def of_versions(
    conversation: int, rows: Iterable[Summary], newest: int, shown: int
) -> SummaryMap:
    """One row for each version, in their order."""
    drawn = SummaryMap(conversation, newest, shown)
    for row in rows:
        text = _("v%(version)s · level %(level)s")
        drawn.add_row(text % {"version": row.version, "level": row.level}, [row])
        drawn.names[-1]["shown"] = row.version == shown
    return drawn


def of_levels(
    conversation: int, rows: Sequence[Summary], newest: int, shown: int
) -> SummaryMap:
    """Return what covers messages now: a row for each level, then the window."""
    drawn = SummaryMap(conversation, newest, shown)
    by_level = sorted(rows, key=lambda row: (-row.level, row.first_seq))
    for level, group in groupby(by_level, lambda row: row.level):
        drawn.add_row(_("level %(level)s") % {"level": level}, group)
    start = max((row.last_seq for row in rows), default=0) + 1
    if start <= newest:
        drawn.add_window(start)
    return drawn
