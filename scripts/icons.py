"""Draws the icons of the installed site from static/icon.svg.

They are rounded boxes, which Pillow draws as well as a browser. Run it when the mark
has changed.
"""

import re
from pathlib import Path

from PIL import Image, ImageDraw

ROOT = Path(__file__).parent.parent
OUT = ROOT / "chatsite/features/installable/static/installable"
# A launcher may cut a maskable icon to the circle in its middle: the mark stays inside
# of it, on its own colour.
SIZES = {"any-192": 1.0, "any-512": 1.0, "maskable-192": 0.72, "maskable-512": 0.72}
# Edges are smooth where they are drawn larger first.
FINER = 4


def draw_icon(svg: str, size: int, share: float) -> Image.Image:
    side = size * FINER
    boxes = [dict(re.findall(r'([\w-]+)="([^"]*)"', box)) for box in BOX.findall(svg)]
    ground = boxes[0]["fill"] if share < 1 else "#0000"
    image = Image.new("RGBA", (side, side), ground)
    pen, unit, edge = ImageDraw.Draw(image), side * share / 32, side * (1 - share) / 2
    for box in boxes:
        x, y, width, height, radius = (
            float(box[name]) * unit for name in ("x", "y", "width", "height", "rx")
        )
        corners = (edge + x, edge + y, edge + x + width, edge + y + height)
        pen.rounded_rectangle(corners, radius, box["fill"])
    return image.resize((size, size), Image.Resampling.LANCZOS)


BOX = re.compile(r"<rect [^>]*>")


def main() -> None:
    svg = (ROOT / "static/icon.svg").read_text()
    for name, share in SIZES.items():
        icon = draw_icon(svg, int(name.rpartition("-")[2]), share)
        icon.quantize(64).save(OUT / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
