"""Every number of the site's looks stands once, in variables.css."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# Paper has sizes of its own, and the admin has Django's.
APART = {"variables.css", "print.css", "admin.css", "experiments.css"}
SHEETS = sorted(
    path
    for folder in ("static", "chatsite")
    for path in (ROOT / folder).rglob("*.css")
    if path.name not in APART and not path.name.startswith("review-")
)
COMMENTS = re.compile(r"/\*.*?\*/", re.DOTALL)
# A condition of @media can't name a variable.
CONDITIONS = re.compile(r"@media[^{]*")
NUMBERS = re.compile(
    r"(?<![\w-])-?\d*\.?\d+(?:px|rem|em|ch|s|ms|pt|mm|[sd]?v[wh])\b"  # sizes, times
    r"|#[0-9a-f]{3,8}\b(?=[^{}]*;)|\brgba?\(|\bhsla?\("  # colours
    r"|(?<![\w.#-])\d*\.\d+\b"  # shares
    r"|(?<=font-weight: )\d+|(?<=line-height: )\d{2,}"
)


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda path: path.stem)
def test_stylesheets_have_no_numbers_of_their_own(sheet):
    css = CONDITIONS.sub("", COMMENTS.sub("", sheet.read_text()))
    urls_apart = re.sub(r"url\(.*?\)", "", css)
    assert NUMBERS.findall(urls_apart) == []


def test_own_messages_rise_in_the_dark():
    variables = (ROOT / "static/css/variables.css").read_text()
    paper, bubble = (
        int(re.search(rf"--{name}: light-dark\(#\w+, #(\w+)\)", variables)[1], 16)
        for name in ("paper", "bubble")
    )
    assert all((bubble >> bits) & 255 > (paper >> bits) & 255 for bits in (0, 8, 16))


def test_every_name_is_a_token():
    variables = (ROOT / "static/css/variables.css").read_text()
    defined = set(re.findall(r"(?m)^  (--[\w-]+):", variables))
    sheets = "".join(path.read_text() for path in SHEETS)
    used = set(re.findall(r"var\((--[\w-]+)", variables + sheets))
    # What an element says to those inside it.
    kinds = {"--kind", "--behind", "--wide", "--hit", "--out", "--place"}
    kinds |= {"--cover", "--shade", "--stroke"}
    assert used - defined - kinds == set()


def test_five_sizes_and_two_weights():
    variables = (ROOT / "static/css/variables.css").read_text()
    letters = ("small", "plain", "reading", "heading", "display")
    assert len(set(re.findall(rf"--(?:{'|'.join(letters)}): (\S+);", variables))) == 5
    sheets = "".join(path.read_text() for path in SHEETS)
    sizes = set(re.findall(r"font-size: var\(--(\w+)\)", sheets))
    assert sizes <= set(letters)
    weights = {"var(--strong)", "var(--regular)", "inherit"}
    assert set(re.findall(r"font-weight: ([^;!]+\b\)?)", sheets)) <= weights


RANGES = re.compile(r"U\+([0-9A-F]+)(?:-([0-9A-F]+))?")
# What a Chinese font draws.
HAN = ((0x2E80, 0x9FFF), (0xFF01, 0xFF0A), (0xFF0C, 0xFFEF))


def test_the_shipped_font_has_every_sign_of_the_site():
    variables = (ROOT / "static/css/variables.css").read_text()
    ranges = [(int(a, 16), int(b or a, 16)) for a, b in RANGES.findall(variables)]
    kinds = ("*.html", "*.js", "*.css", "*.po")
    folders = ("templates", "static", "chatsite", "locale")
    signs = {
        sign
        for folder in folders
        for kind in kinds
        for path in (ROOT / folder).rglob(kind)
        for sign in path.read_text()
    }
    ranges += HAN
    foreign = {s for s in signs if not any(a <= ord(s) <= b for a, b in ranges)}
    assert foreign == set()


def test_the_fonts_are_small_and_have_their_licence():
    fonts = ROOT / "vendor/inter"
    assert sum(font.stat().st_size for font in fonts.glob("*.woff2")) <= 130_000
    assert "SIL Open Font License" in (fonts / "LICENSE.txt").read_text()
    named = re.findall(
        r"inter/([\w-]+\.woff2)", (ROOT / "static/css/variables.css").read_text()
    )
    assert set(named) == {font.name for font in fonts.glob("*.woff2")}
