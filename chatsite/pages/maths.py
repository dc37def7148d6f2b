"""Formulas in Markdown: TeX between dollars or \\(…\\) is shown as it was written, for
Markdown would eat its backslashes and take its stars and lines for emphasis.
"""

import re

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

# What is longer is no formula; looking for its end at every dollar would take long.
MAX_CHARS = 1_000
MAX_LINES = 60

# A price is no formula: no space inside the dollars, no digit behind them.
INLINE = re.compile(
    r"\$\$[^$]+\$\$|\$(?![\s$])[^$\n]*[^\s$\\]\$(?![\d$])|\\\(.+?\\\)|\\\[.+?\\\]",
    re.DOTALL,
)
CLOSING = {"$$": "$$", "\\[": "\\]"}


def plug_in(parser: MarkdownIt) -> None:
    parser.inline.ruler.before("escape", "formula", _inline)
    parser.block.ruler.before(
        "fence", "formula", _block, {"alt": ["paragraph", "blockquote", "list"]}
    )


def _inline(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] not in "$\\":
        return False
    end = min(state.posMax, state.pos + MAX_CHARS)
    found = INLINE.match(state.src, state.pos, end)
    if not found:
        return False
    if not silent:
        token = state.push("code_inline", "code", 0)
        token.content = found[0]
        token.attrSet("class", "math")
    state.pos = found.end()
    return True


def _block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A formula on lines of its own, from its opening signs to its closing ones."""
    first = _line(state, start)
    closing = CLOSING.get(first[:2])
    if closing is None or state.is_code_block(start):
        return False
    last = _find_end(state, start, min(end, start + MAX_LINES), closing)
    if last is None:
        return False
    if not silent:
        token = state.push("formula", "pre", 0)
        token.content = state.getLines(start, last + 1, state.blkIndent, False)
        token.map = [start, last + 1]
        state.line = last + 1
    return True


def _find_end(state: StateBlock, start: int, end: int, closing: str) -> int | None:
    for number in range(start, end):
        line = _line(state, number).rstrip()
        opened = 2 if number == start else 0
        if line.endswith(closing) and len(line) >= opened + 2:
            return number
        if not line or state.sCount[number] < state.blkIndent:
            return None
    return None


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]
