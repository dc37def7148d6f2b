"""The figures as an SVG: one row per contestant, one bar per panel, in both themes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

LABEL, PANEL, GAP = 330, 130, 64
TOP, ROW, BAR = 64, 26, 14
STYLE = """\
text { font: 13px system-ui, sans-serif; fill: #1f2933 }
.head { font-weight: 600 }
.note { font-size: 12px; fill: #52606d }
.bar { fill: #9aa5b1 }
.ours { fill: #0b7285 }
.axis { stroke: #cbd2d9 }
@media (prefers-color-scheme: dark) {
  text { fill: #e4e7eb }
  .note { fill: #9aa5b1 }
  .bar { fill: #616e7c }
  .ours { fill: #3bc9db }
  .axis { stroke: #3e4c59 }
}"""


@dataclass(frozen=True, slots=True)
class Panel:
    """A value per row, drawn to the scale of the largest; `note` says which is good."""

    title: str
    note: str
    values: Sequence[float]


def draw(
    names: Sequence[str], panels: Sequence[Panel], *, ours: str, title: str
) -> str:
    width = LABEL + len(panels) * (PANEL + GAP)
    height = TOP + len(names) * ROW + 12
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        *_draw_labels(names),
    ]
    marked = [name.startswith(ours) for name in names]
    for number, panel in enumerate(panels):
        lines += _draw_panel(panel, LABEL + number * (PANEL + GAP), marked)
    return "\n".join([*lines, "</svg>", ""])


def _draw_labels(names: Sequence[str]) -> Iterator[str]:
    for index, name in enumerate(names):
        y = TOP + index * ROW + BAR - 2
        yield f'<text x="{LABEL - 12}" y="{y}" text-anchor="end">{escape(name)}</text>'


def _draw_panel(panel: Panel, x: int, marked: Sequence[bool]) -> Iterator[str]:
    yield f'<text class="head" x="{x}" y="22">{escape(panel.title)}</text>'
    yield f'<text class="note" x="{x}" y="42">{escape(panel.note)}</text>'
    bottom = TOP + len(marked) * ROW - (ROW - BAR)
    yield f'<line class="axis" x1="{x}" x2="{x}" y1="{TOP - 6}" y2="{bottom + 6}"/>'
    largest = max(panel.values, default=0) or 1
    for index, value in enumerate(panel.values):
        y = TOP + index * ROW
        size = round(value / largest * PANEL)
        kind = "bar ours" if marked[index] else "bar"
        yield f'<rect class="{kind}" x="{x}" y="{y}" width="{size}" height="{BAR}"/>'
        yield f'<text x="{x + size + 6}" y="{y + BAR - 2}">{value:,.0f}</text>'
