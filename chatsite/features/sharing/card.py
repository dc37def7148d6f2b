"""The picture of a shared moment for sites that show links with one (Open Graph).

It has both panes: the last messages, and the request of the reply to scale. Letters are
those of the shipped font; a line in another script is drawn as a bar.
"""

from functools import cache
from io import BytesIO
from textwrap import wrap

from django.contrib.staticfiles import finders
from django.utils.text import Truncator
from django.utils.translation import override
from PIL import Image, ImageDraw, ImageFont

from chatsite.pages.presenters import context_pane, snapshot

from .link_contents import shown_messages, title_of_share
from .models import Share
from .presenter import SharedContext

# Pixels, as Open Graph recommends for large pictures.
SIZE = WIDTH, HEIGHT = 1200, 630
LEFT, RIGHT, TOP, BOTTOM, GAP = 40, 700, 96, 600, 12
MESSAGES, LINES, LINE_CHARS, TITLE_CHARS, GLANCE_CHARS = 3, 3, 44, 38, 46
FONT = "inter/inter-latin.woff2"
PAPER, GLASS, INK, MUTED, LINE = "#fbfaf7", "#f0f6f7", "#23272b", "#5c6268", "#e6e2d9"
# The colours of the light page, static/css/variables.css.
COLOURS = {
    "system": "#5b5697",
    "rules": "#9a4a1c",
    "facts": "#7a3e8f",
    "summaries": "#cc8a17",
    "pinned": "#a3365f",
    "window": "#12697a",
    "recalled": "#3c7033",
    "newest": "#2b62b8",
}
AWAY = "#5f6368"
Draw = ImageDraw.ImageDraw


def draw_moment(share: Share, seen: SharedContext) -> bytes:
    """Return the picture as PNG; without a request that may be shown only the title."""
    image = Image.new("RGB", SIZE, PAPER)
    draw = ImageDraw.Draw(image)
    draw.rectangle((RIGHT - 32, 0, WIDTH, HEIGHT), fill=GLASS)
    title = title_of_share(share) or "Shared conversation"
    title = Truncator(title).chars(TITLE_CHARS)
    _write_line(draw, (LEFT, 36), title, 30, weight=600)
    if seen.is_whole:
        _draw_messages(draw, share, seen)
        with override("en"):
            _draw_stack(draw, seen)
    _write_line(draw, (RIGHT, HEIGHT - 44), "Windowpane", 20, MUTED, weight=600)
    written = BytesIO()
    image.save(written, "PNG", optimize=True)
    return written.getvalue()


def _draw_messages(draw: Draw, share: Share, seen: SharedContext) -> None:
    rows = snapshot.messages_at(share.conversation, seen.call, shown_messages(share))
    top = TOP
    for row in [row for row in rows if row.role != "tool"][-MESSAGES:]:
        lines = wrap(" ".join(row.text.split()), LINE_CHARS)[:LINES] or [""]
        height = 38 * len(lines) + 24
        is_user = row.role == "user"
        box = (LEFT + 90 * is_user, top, RIGHT - 60, top + height)
        fill = COLOURS["window"] if is_user else "white"
        draw.rounded_rectangle(box, 18, fill=fill, outline=LINE)
        for number, line in enumerate(lines):
            place = (box[0] + 20, top + 14 + 38 * number)
            _write_line(draw, place, line, 24, "white" if is_user else INK)
        top += height + GAP


def _draw_stack(draw: Draw, seen: SharedContext) -> None:
    pane = seen.read_pane()
    sheets = [sheet for sheet in pane.sheets if sheet.section]
    total = pane.gauge.used
    head = f"What the model read · {total:,} tokens"
    _write_line(draw, (RIGHT, 40), head, 24, weight=600)
    room = BOTTOM - TOP - 60 - (44 + GAP) * len(sheets)
    top = TOP
    for sheet in sheets:
        height = 44 + room * sheet.tokens // max(total, 1)
        box = (RIGHT, top, WIDTH - LEFT, top + height)
        draw.rounded_rectangle(box, 10, fill="white", outline=LINE)
        band = (RIGHT, top, RIGHT + 12, top + height)
        draw.rounded_rectangle(band, 6, fill=COLOURS.get(sheet.kind, AWAY))
        _write_line(draw, (RIGHT + 28, top + 8), str(sheet.section.title), 22)
        _draw_glances(draw, sheet.section, top + 44, top + height)
        tokens, font = f"{sheet.tokens:,}", _font(22, 400)
        _write_line(
            draw, (box[2] - 20 - font.getlength(tokens), top + 8), tokens, 22, MUTED
        )
        top += height + GAP


def _draw_glances(
    draw: Draw, section: context_pane.ContextSection, top: int, bottom: int
) -> None:
    """Write the beginnings of what a sheet holds, as many lines as it has room for."""
    lines = [
        line
        for glance in section.glances
        for line in wrap(glance.text, GLANCE_CHARS)[:LINES]
    ]
    for line in lines[: (bottom - top) // 28]:
        _write_line(draw, (RIGHT + 28, top), line, 17, MUTED)
        top += 28


def _write_line(
    draw: Draw,
    place: tuple[float, float],
    text: str,
    size: int,
    colour: str = INK,
    weight: int = 400,
) -> None:
    x, y = place
    if all(ord(letter) < 0x250 or 0x2000 <= ord(letter) < 0x2070 for letter in text):
        draw.text(place, text, colour, _font(size, weight))
        return
    width = min(size * len(text), RIGHT - 160 - x)
    draw.rounded_rectangle(
        (x, y + size // 3, x + width, y + size), size // 3, fill=LINE
    )


@cache
def _font(size: int, weight: int) -> ImageFont.FreeTypeFont:
    font = ImageFont.truetype(finders.find(FONT), size)
    font.set_variation_by_axes([weight])
    return font
