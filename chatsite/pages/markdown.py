"""Markdown of people and models to safe HTML; the only place that makes HTML of it.

Text whose formatting would be too dear, or would lose words, is shown as it is.
"""

import re
from typing import Any

import nh3
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

from . import maths
from .html_cache import Cache

# Beyond these the parser takes long: its cost grows with open brackets and with cells.
MAX_CHARS = 40_000
MAX_BRACKETS = 2_000
MAX_CELLS = 4_000
# Enough for some thousand messages of usual length.
CACHE_BYTES = 16 * 1024 * 1024
# The parser drops what is nested deeper than its own limit of 100.
MAX_LEVEL = 60

TAGS = {
    *("a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6"),
    *("hr", "li", "ol", "p", "pre", "s", "strong", "table", "tbody", "td", "th"),
    *("thead", "tr", "ul"),
}
ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}, "code": {"class"}}
# The language of a piece of code, for its label and colours, and "math" for formulas.
CODE_CLASS = re.compile(r"language-[\w+#.-]{1,20}|math", re.ASCII)
SCHEMES = {"http", "https", "mailto"}
# Links to this site itself are dropped too: a model has no business with its pages.
ABSOLUTE = re.compile(r"(https?://|mailto:)[^/\\]", re.IGNORECASE)

_parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "breaks": True})
_parser.enable(["table", "strikethrough"]).disable("image")
_parser.options["maxNesting"] = 100
maths.plug_in(_parser)
_parser.add_render_rule(
    "formula",
    lambda self, tokens, index, *_: (
        f'<pre><code class="math">{escape(tokens[index].content)}</code></pre>\n'
    ),
)


cache = Cache(CACHE_BYTES)


def render(text: str) -> SafeString:
    """The text as HTML: formatted, or escaped as it stands where that is safer."""
    html = cache.get(text)
    if html is None:
        html = render_uncached(text)
        cache.put(text, html)
    return html


def render_uncached(text: str) -> SafeString:
    html = render_part(text, {}) if is_cheap(text) else None
    return format_html('<pre class="wrap">{}</pre>', text) if html is None else html


def render_part(text: str, links: dict[str, Any]) -> SafeString | None:
    """Whole blocks of a text as HTML, or None when they are nested too deep.

    `links` keeps what the parts of one text define for those that follow.
    """
    html = _format(text, links)
    if html is None:
        return None
    return mark_safe(_sanitise(html))  # noqa: S308 - nh3 has just cleaned it


def find_blocks(text: str, links: dict[str, Any]) -> list[Token] | None:
    """The tokens of a text's blocks, with their lines, and nothing of what is in them:
    that is what takes the time. None when they are nested too deep."""
    known = {"references": dict(links.get("references", {}))}
    source = text.replace("\r\n", "\n").replace("\r", "\n")
    tokens: list[Token] = []
    try:
        _parser.block.parse(source, _parser, known, tokens)
    except RecursionError:
        return None
    return None if any(token.level > MAX_LEVEL for token in tokens) else tokens


def is_cheap(text: str) -> bool:
    """Whether a text is formatted at all."""
    return (
        len(text) <= MAX_CHARS
        and text.count("[") <= MAX_BRACKETS
        and text.count("|") <= MAX_CELLS
    )


def _format(text: str, links: dict[str, Any]) -> str | None:
    """The HTML, or None when the text is nested deeper than the parser follows."""
    try:
        tokens = _parser.parse(text, links)
        if any(token.level > MAX_LEVEL for token in tokens):
            return None
        return _parser.renderer.render(tokens, _parser.options, {})
    except RecursionError:
        return None


def _sanitise(html: str) -> str:
    return nh3.clean(
        html,
        tags=TAGS,
        attributes=ATTRIBUTES,
        url_schemes=SCHEMES,
        attribute_filter=_keep_attribute,
        link_rel="nofollow noopener noreferrer",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )


def code_class(info: str) -> str:
    """The class for a piece of code in the language that its fence names, or ""."""
    name = f"language-{info.split(maxsplit=1)[0]}" if info.strip() else ""
    return name if CODE_CLASS.fullmatch(name) else ""


def _keep_attribute(tag: str, name: str, value: str) -> str | None:
    if name == "href" and not ABSOLUTE.match(value):
        return None
    if tag == "code" and not CODE_CLASS.fullmatch(value):
        return None
    return value
