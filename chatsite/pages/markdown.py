"""Markdown of people and models to safe HTML; the only place that makes HTML of it.

Text whose formatting would be too dear, or would lose words, is shown as it is.
"""

import re
from collections.abc import Iterator
from itertools import zip_longest
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

# An address in a text, without Chinese that follows or the end of a sentence.
URL = re.compile(r"https?://[^\s<>\"'`\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]+")
AFTER_URL = ".,;:!?*_~"
TASK = re.compile(r"\[([ xX])\] ")


def _add_usual(tokens: list[Token]) -> None:
    """What models write beyond CommonMark: links without brackets, lists of tasks. A
    picture is a link here, so the mark before it goes."""
    for at, token in enumerate(tokens):
        if token.type != "inline" or not token.children:
            continue
        if tokens[at - 2].type == "list_item_open":
            first = token.children[0]
            if task := TASK.match(first.content):
                box = "☐ " if task[1] == " " else "☑ "
                first.content = box + first.content[task.end() :]
        token.children = list(_link(token.children))


def _link(children: list[Token]) -> Iterator[Token]:
    """The same tokens, with addresses in texts outside of links as links."""
    is_inside = False
    for token, following in zip_longest(children, children[1:]):
        if token.type in ("link_open", "link_close"):
            is_inside = token.type == "link_open"
        if token.type != "text" or is_inside:
            yield token
            continue
        starts_link = following is not None and following.type == "link_open"
        if starts_link and following.markup != "autolink":
            token.content = token.content.removesuffix("!")
        yield from _link_text(token)


def _link_text(token: Token) -> Iterator[Token]:
    end = 0
    for found in URL.finditer(token.content):
        address = found[0].rstrip(AFTER_URL)
        while address.endswith(")") and address.count(")") > address.count("("):
            address = address[:-1].rstrip(AFTER_URL)
        href = _parser.normalizeLink(address)
        if not (_parser.validateLink(href) and ABSOLUTE.match(href)):
            continue
        yield _text(token, token.content[end : found.start()])
        yield Token("link_open", "a", 1, {"href": href}, level=token.level)
        yield _text(token, address)
        yield Token("link_close", "a", -1, level=token.level)
        end = found.start() + len(address)
    yield _text(token, token.content[end:])


def _text(like: Token, content: str) -> Token:
    return Token("text", "", 0, content=content, level=like.level)


_parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "breaks": True})
_parser.enable(["table", "strikethrough"]).disable("image")
_parser.options["maxNesting"] = 100
_parser.core.ruler.after("inline", "usual", lambda state: _add_usual(state.tokens))
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
