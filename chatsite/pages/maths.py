"""Formulas in Markdown, drawn as MathML, which browsers lay out by themselves.

A formula is TeX between dollars or \\(…\\), or in an environment for formulas. One that
cannot be drawn is shown as it was written, for Markdown would eat its backslashes and
take its stars and lines for emphasis.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from html import unescape
from typing import Any
from unicodedata import category
from xml.etree.ElementTree import Element

from django.utils.html import escape
from latex2mathml.converter import Converter
from latex2mathml.symbols_parser import convert_symbol
from latex2mathml.walker import Node
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from memory.engine.summaries.facts import DOLLARS

# What is longer is no formula; looking for its end at every dollar would take long.
MAX_CHARS = 1_000
MAX_LINES = 60
# Drawn of one text: TeX of these characters in all; of a formula so many, with so many
# parts, in each other so deep. A few dozen characters can ask for millions of parts.
MAX_TEX = 12_000
MAX_FORMULA = 3_000
MAX_PARTS = 2_000
MAX_DEPTH = 60

# Environments that make a formula of what is in them, without dollars around them.
FRAMES = ("equation", "equation*", "displaymath")
ROWS = ("align", "align*", "eqnarray", "eqnarray*", "gather", "gather*")
OPENING = re.compile(rf"\\begin\{{({'|'.join(map(re.escape, FRAMES + ROWS))})\}}")
INLINE = re.compile(
    rf"\$\$[^$]+\$\$|{DOLLARS}|\\\(.+?\\\)|\\\[.+?\\\]"
    rf"|{OPENING.pattern}.+?\\end\{{\1\}}",
    re.DOTALL,
)
CLOSING = {"$$": "$$", "\\[": "\\]"}

# Dollars are also money, variables of shells and cells of sheets. TeX has commands,
# powers, indices; other formulas have letters that stand alone, or operators.
COMMAND = re.compile(r"\\[a-zA-Z,;:!|{}%]|\^|_\{|(?<![A-Za-z])[A-Za-zΑ-ω]'*_\w")
NO_FORMULA = re.compile(
    r"[a-zA-Z]{4}|[^\W\d_a-zA-ZΑ-ω]|[\"#;@?`~]|[-+*/=<>:,.(\[{&·–-]$|^[,;:./*)=]"
    r"|^\d[\d,.]*\s+[a-zA-Z(]"
)
# None of TeX: of patterns, addresses and code.
OTHER_SIGN = re.compile(r"(?<!\\)[#@`]")
SYMBOL = re.compile(r"[+\-*/=<>±≠≤≥≈∈∞∑∂∇]")
OPERATOR = re.compile(r"[=+*/<>(|≤≥≈≠±×÷-]")
# A word that goes on behind a formula: "the $n$th".
ENDING = re.compile(r"(?:th|st|nd|rd|s)\b|[^a-zA-Z_({\[]|$")

# What the sanitiser keeps of a formula: layout, and neither colours nor addresses.
TAGS = {
    *("math", "menclose", "mfrac", "mi", "mn", "mo", "mover", "mpadded", "mphantom"),
    *("mroot", "mrow", "mspace", "msqrt", "mstyle", "msub", "msubsup", "msup"),
    *("mtable", "mtd", "mtext", "mtr", "munder", "munderover"),
}
ATTRIBUTES = {
    "math": {"display"},
    "menclose": {"notation"},
    "mfrac": {"linethickness"},
    "mi": {"mathvariant"},
    "mo": {
        *("accent", "fence", "form", "largeop", "lspace", "maxsize", "minsize"),
        *("movablelimits", "rspace", "separator", "stretchy", "symmetric"),
    },
    "mover": {"accent"},
    "mpadded": {"depth", "height", "lspace", "voffset", "width"},
    "mspace": {"width"},
    "mstyle": {"displaystyle", "scriptlevel"},
    "mtable": {"displaystyle"},
    "mtd": {"columnalign"},
}
# A word, or a length that moves nothing out of its place.
VALUE = re.compile(r"[a-z]+( [a-z]+)?|[+-]?\d?(\.\d+)?(em|ex|px)?", re.ASCII)

# Environments with the names under which they can be drawn, without numbers.
ENVIRONMENT = re.compile(r"\\(begin|end)\s*\{(\w+\*?)\}", re.ASCII)
GATHERED = ("gather", "gather*", "gathered")
ALIGNED = ("align", "align*", "aligned", "eqnarray", "eqnarray*", "split")
ENVIRONMENTS = {
    **{name: name for name in ("array", "cases", "matrix", "smallmatrix")},
    **{f"{mark}matrix": f"{mark}matrix" for mark in "pbBvV"},
    **dict.fromkeys(GATHERED, "matrix"),
    **dict.fromkeys(ALIGNED, "align*"),
    "dcases": "cases",
}
# A name for links to the formula, which there are not.
LABEL = re.compile(r"\\label\s*\{[^{}]*\}")
LETTERS = {"script": "cal", "double-struck": "bb", "fraktur": "frak", "bold": "bf"}
# Elements that are laid out only with so many in them.
INSIDE = {
    **dict.fromkeys(("mfrac", "mroot", "msub", "msup", "mover", "munder"), 2),
    **dict.fromkeys(("msubsup", "munderover"), 3),
}
CHARACTER = re.compile(r"&#x[0-9A-Fa-f]+;")
DOLLAR = re.compile(r"(?<!\\)\$")


class _UndrawableError(Exception):
    pass


class _Definitions(dict[str, Any]):
    """Macros that cannot be defined: definitions of one another grow without end."""

    def __setitem__(self, name: str, body: object) -> None:
        raise _UndrawableError


class _FormulaConverter(Converter):
    """A formula as elements, at most so many."""

    def __init__(self, display: str) -> None:
        super().__init__(display=display)
        self.macros = _Definitions()
        self.parts = 0

    def _convert_group(
        self, nodes: Iterable[Node], parent: Element, font: Any = None
    ) -> None:
        super()._convert_group(self._count(nodes), parent, font)

    def _count(self, nodes: Iterable[Node]) -> Iterator[Node]:
        for node in nodes:
            self.parts += 1
            if self.parts > MAX_PARTS:
                raise _UndrawableError
            yield node


def plug_in(parser: MarkdownIt) -> None:
    parser.inline.ruler.before("escape", "formula", _parse_inline)
    parser.block.ruler.before(
        "fence", "formula", _parse_block, {"alt": ["paragraph", "blockquote", "list"]}
    )
    parser.add_render_rule("formula", _render_inline)
    parser.add_render_rule("formula_block", _render_block)


def _render_inline(
    _renderer: object, tokens: Sequence[Token], index: int, _options: object, env: Any
) -> str:
    source = tokens[index].content
    return _draw_formula(source, env) or f'<code class="math">{escape(source)}</code>'


def _render_block(
    _renderer: object, tokens: Sequence[Token], index: int, _options: object, env: Any
) -> str:
    source = tokens[index].content
    if drawn := _draw_formula(source, env):
        return f"<p>{drawn}</p>\n"
    return f'<pre><code class="math">{escape(source)}</code></pre>\n'


def _draw_formula(source: str, env: dict[str, Any]) -> str | None:
    """Return the formula as MathML, or None. `env` counts for all parts of one text."""
    tex, display = _unwrap_formula(source.strip())
    env["tex"] = env.get("tex", 0) + len(tex)
    if env["tex"] > MAX_TEX or len(tex) > MAX_FORMULA or DOLLAR.search(tex):
        return None
    try:
        tex = ENVIRONMENT.sub(_rename_environment, LABEL.sub("", tex))
        return _write_html(_FormulaConverter(display).convert_to_element(tex))
    except Exception:  # noqa: BLE001 - the converter has no error for all that is no TeX
        return None


def _unwrap_formula(source: str) -> tuple[str, str]:
    """Return the TeX without its marks, and MathML's word for its display."""
    if OPENING.match(source):
        return source, "block"
    marks = 2 if source[:2] in ("$$", "\\(", "\\[") else 1
    is_inline = marks == 1 or source.startswith("\\(")
    return source[marks:-marks], "inline" if is_inline else "block"


def _rename_environment(found: re.Match[str]) -> str:
    if found[2] in FRAMES:
        return "{" if found[1] == "begin" else "}"
    if found[2] not in ENVIRONMENTS:
        raise _UndrawableError
    return f"\\{found[1]}{{{ENVIRONMENTS[found[2]]}}}"


def _write_html(element: Element, depth: int = 0) -> str:
    """Write the elements as HTML.

    The converter's own text is not escaped, and has its characters as references.
    """
    if depth > MAX_DEPTH or len(element) != INSIDE.get(element.tag, len(element)):
        raise _UndrawableError
    text = CHARACTER.sub(lambda found: unescape(found[0]), element.text or "")
    variant = element.attrib.get("mathvariant", "")
    if variant in LETTERS and len(text) == 1:
        symbol = convert_symbol(f"\\math{LETTERS[variant]}{{{text}}}")
        text = chr(int(symbol, 16)) if symbol else text
    if len(text) > 1 and text.startswith("\\"):  # a command that it doesn't know
        raise _UndrawableError
    # "±" and others come as names of variables, without the space around them.
    is_operator = element.tag == "mi" and len(text) == 1 and category(text) == "Sm"
    tag = "mo" if is_operator else element.tag
    names = "".join(f' {name}="{escape(value)}"' for name, value in element.items())
    inside = "".join(_write_html(child, depth + 1) for child in element)
    return f"<{tag}{names}>{escape(text)}{inside}</{tag}>"


def _parse_inline(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] not in "$\\":
        return False
    before = state.src[state.pos - 1] if state.pos else ""
    if state.src[state.pos] == "$" and before.isascii() and before.isalnum():
        return False  # "US$5"
    end = min(state.posMax, state.pos + MAX_CHARS)
    found = INLINE.match(state.src, state.pos, end)
    if not found or not is_formula(found[0], state.src[found.end() : found.end() + 3]):
        return False
    if not silent:
        state.push("formula", "math", 0).content = found[0]
    state.pos = found.end()
    return True


def is_formula(source: str, after: str) -> bool:
    """Return if what stands between marks is TeX; between dollars it may be prose."""
    tex = _unwrap_formula(source)[0].strip()
    if source.startswith("$") and after.startswith("$"):
        return False
    if not source.startswith("$") or SYMBOL.fullmatch(tex):
        return True
    if source.startswith("$$"):
        has_sign = COMMAND.search(tex) or OPERATOR.search(tex[1:-1])
        return bool(has_sign) or _is_plain_formula(tex)
    if not ENDING.match(after):
        return False
    has_tex = COMMAND.search(tex) and not OTHER_SIGN.search(tex)
    return bool(has_tex) or _is_plain_formula(tex)


def _is_plain_formula(tex: str) -> bool:
    """Return if it is one without commands: `x`, `f(x)`, `5`, `F = ma`; no word."""
    if NO_FORMULA.search(tex) or tex.count("(") != tex.count(")"):
        return False
    has_words = re.search("[a-zA-Z]{2}", tex)
    return not has_words or bool(OPERATOR.search(tex))


def _parse_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse a formula on lines of its own, from its opening to its closing signs."""
    first = read_line(state, start)
    begun = OPENING.match(first)
    closing = f"\\end{{{begun[1]}}}" if begun else CLOSING.get(first[:2])
    if closing is None or state.is_code_block(start):
        return False
    last = _find_closing(state, start, min(end, start + MAX_LINES), closing)
    if last is None:
        return False
    if not silent:
        token = state.push("formula_block", "math", 0)
        token.content = state.getLines(start, last + 1, state.blkIndent, False)
        token.map = [start, last + 1]
        state.line = last + 1
    return True


def _find_closing(state: StateBlock, start: int, end: int, closing: str) -> int | None:
    for number in range(start, end):
        line = read_line(state, number).rstrip()
        opened = 2 if number == start else 0
        if line.endswith(closing) and len(line) >= opened + 2:
            return number
        if not line or state.sCount[number] < state.blkIndent:
            return None
    return None


def read_line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]
