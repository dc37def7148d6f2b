"""Texts that look empty, whatever they are made of."""

import pytest

from memory.engine.blank import is_blank

BLANK = {
    "nothing": "",
    "spaces of all kinds": " \t\r\n\u00a0\u2003\u3000\u2028",
    "zero-width characters": "\u200b\u200c\u200d\u2060\ufeff",
    "direction marks": "\u200e\u200f\u202a\u202e\u2066\u2069\u061c",
    "soft hyphens": "\u00ad\u00ad",
    "fillers": "\u115f\u1160\u3164\uffa0\u2800\u034f",
    "variation selectors": "\ufe0f\ufe00\U000e0100\u180b",
    "tags": "\U000e0041\U000e007f",
    "a mixture": " \u200b\n\u00ad\u202e ",
}
READABLE = ["a", ".", "\u200b0\u200b", "👩\u200d🚀", "\u05d0", "中", "\u0301", "\ufffd"]


@pytest.mark.parametrize("text", BLANK.values(), ids=BLANK)
def test_invisible_text_is_blank(text):
    assert is_blank(text)


@pytest.mark.parametrize("text", READABLE)
def test_visible_text_is_not_blank(text):
    assert not is_blank(text)
