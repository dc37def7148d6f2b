"""Blank texts, and texts without the marks of code blocks.

Characters without a shape count as spaces.
"""

import re
import unicodedata

# Spaces, controls, and what only steers others: joiners, direction marks, soft hyphens.
SHAPELESS = {"Zs", "Zl", "Zp", "Cc", "Cf"}
# Drawn as nothing, though Unicode counts them as letters, marks or symbols: fillers,
# the combining grapheme joiner, variation selectors, the empty Braille cell.
FILLERS = {
    *map(chr, (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0)),
    *map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10))),
    *map(chr, range(0xE0100, 0xE01F0)),
}


def is_blank(text: str) -> bool:
    """Return whether no character of the text is visible.

    Each character is judged alone.
    """
    return all(
        char in FILLERS or unicodedata.category(char) in SHAPELESS for char in text
    )


# The line above or below a code block: marks for a program, not words.
FENCE_LINE = re.compile(r"^ {0,3}(?:```|~~~).*$", re.MULTILINE)


def drop_fences(text: str) -> str:
    """Remove the lines around code blocks; keep a text that has nothing else."""
    return FENCE_LINE.sub("", text).strip() or text
