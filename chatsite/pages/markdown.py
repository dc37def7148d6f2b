"""Markdown of people and models to safe HTML; the only place that makes HTML of it.

Text whose formatting would be too dear, or would lose words, is shown as it is.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any
from unicodedata import east_asian_width

import nh3
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_block import StateBlock, fence, reference
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Scanned
from markdown_it.token import Token
from markdown_it.utils import EnvType

from . import citations, maths
from .html_cache import Cache

# Beyond these the parser takes long: its cost grows with open brackets and with cells.
MAX_CHARS = 40_000
MAX_BRACKETS = 2_000
MAX_CELLS = 4_000
# Enough for some thousand messages of usual length.
CACHE_BYTES = 16 * 1024 * 1024
# The parser drops what is nested deeper than its own limit of 100.
MAX_LEVEL = 60

# Tags of HTML that models write; in pairs and without attributes they are formatting.
PAIRS = (
    *("b", "del", "em", "i", "ins", "kbd", "mark", "s", "small", "strong", "sub"),
    *("sup", "u"),
)
TAGS = {
    *(*maths.TAGS, *PAIRS, "a", "blockquote", "br", "code", "h1", "h2", "h3", "h4"),
    *("h5", "h6", "hr", "li", "ol", "p", "pre", "table", "tbody", "td", "th", "thead"),
    *("tr", "ul"),
}
ATTRIBUTES = maths.ATTRIBUTES | {
    "a": {"href", "title"},
    "ol": {"start"},
    "code": {"class"},
    "li": {"class"},
    "td": {"class"},
    "th": {"class"},
}
# A task has its box in place of a bullet; a column can be aligned.
CLASSES = {"li": {"task"}, "td": {"right", "center"}, "th": {"right", "center"}}
# The language of a piece of code, for its label and colours, and "math" for formulas
# that can't be drawn.
CODE_CLASS = re.compile(r"language-[\w+#.-]{1,20}|math", re.ASCII)
SCHEMES = {"http", "https", "mailto"}
# Links to this site itself are dropped too: a model has no business with its pages.
ABSOLUTE = re.compile(r"(https?://|mailto:)[^/\\]", re.IGNORECASE)

PAIR = re.compile(rf"<({'|'.join(PAIRS)})>", re.IGNORECASE)
# A line break. In a sentence, with spaces on both sides, the tag is a word.
BREAK = re.compile(r"(?<! ) *<br ?/?> *", re.IGNORECASE)
# What may follow a letter to choose its form.
VARIATIONS = "".join(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))

# An address in a text, without Chinese that follows or the end of a sentence.
URL = re.compile(r"https?://[^\s<>\"'`\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]+")
AFTER_URL = ".,;:!?*_~"
TASK = re.compile(r"\[([ xX])\] ")
# The mark of a footnote in a text, and where the note itself begins. In a text a name
# follows a word: elsewhere, and before a sign of repetition, "[^abc]" is a pattern.
NAME = r"[^\W\d_](?:\w{1,30}(?:-\w{1,30}){0,4})?"
NOTE = re.compile(rf"\[\^(\d{{1,3}}|{NAME})\]:[ \t]")
MARK = re.compile(rf"\[\^(\d{{1,3}}|(?<=[^\s(\[{{|/]\[\^){NAME}(?=\](?![+*{{\"'/])))\]")


class _InlineState(StateInline):
    def scanDelims(self, start: int, canSplitWord: bool) -> Scanned:  # noqa: N802, N803
        """Return where emphasis may begin and end.

        Chinese, Japanese and Korean have no spaces around words, so beside their
        characters punctuation decides nothing.
        """
        scanned = super().scanDelims(start, canSplitWord)
        end = start + scanned.length
        before = self.src[max(0, start - 2) : start].rstrip(VARIATIONS)[-1:]
        after = self.src[end : min(end + 1, self.posMax)]
        if self.src[start] == "_" or not (_is_wide(before) or _is_wide(after)):
            return scanned
        return Scanned(_is_inside(after), _is_inside(before), scanned.length)


def _is_inside(character: str) -> bool:
    return bool(character) and not character.isspace()


def _is_wide(character: str) -> bool:
    """Return if it is a letter or punctuation of Chinese, Japanese or Korean.

    Emoji are as wide, and are none.
    """
    code = ord(character or " ")
    is_emoji = code < 0x2E80 or 0x1F000 <= code < 0x20000
    is_wide = not is_emoji and east_asian_width(character) in "WFH"
    return is_wide or 0x1100 <= code < 0x1200


class InlineParser(ParserInline):
    def parse(
        self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]
    ) -> list[Token]:
        state = _InlineState(src, md, env, tokens)
        self.tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


def _add_usual(state: StateCore) -> None:
    """Add what models write beyond CommonMark.

    These are links without brackets, lists of tasks, columns that are aligned, line
    breaks as tags, and numbers of sources. A picture is a link here, so the mark before
    it goes.
    """
    tokens, cited = state.tokens, state.env.get("cited")
    for at, token in enumerate(tokens):
        if token.tag in ("td", "th") and (style := str(token.attrs.pop("style", ""))):
            # No policy of the site's pages lets a style through.
            token.attrs["class"] = style.removeprefix("text-align:")
        if token.type != "inline" or not token.children:
            continue
        if tokens[at - 2].type == "list_item_open":
            first = token.children[0]
            if task := TASK.match(first.content):
                tokens[at - 2].attrs["class"] = "task"
                box = "☐ " if task[1] == " " else "☑ "
                first.content = box + first.content[task.end() :]
        if state.md is not _typed_parser:
            is_cell = tokens[at - 1].tag in ("td", "th")
            token.children = list(_break_lines(token.children, is_cell=is_cell))
        token.children = list(_link_addresses(token.children))
        if cited:
            link = partial(citations.link_numbers, cited=cited)
            token.children = list(_link_outside(token.children, link))


def _break_lines(children: list[Token], *, is_cell: bool) -> Iterator[Token]:
    for token in children:
        end = 0
        for found in BREAK.finditer(token.content) if token.type == "text" else ():
            is_word = found[0].startswith(" ") and found[0].endswith(" ")
            if is_cell or not is_word:
                yield citations.make_text(token, token.content[end : found.start()])
                yield Token("hardbreak", "br", 0, level=token.level)
                end = found.end()
        if end:
            token.content = token.content[end:]
        yield token


def _link_addresses(children: list[Token]) -> Iterator[Token]:
    """Yield the same tokens, with addresses in texts outside of links as links."""
    for token, following in pairwise(children):
        is_link = following.type == "link_open" and following.markup != "autolink"
        if token.type == "text" and is_link:
            token.content = token.content.removesuffix("!")
    return _link_outside(children, _link_text)


def _link_outside(
    children: list[Token], link: Callable[[Token], Iterator[Token]]
) -> Iterator[Token]:
    """Yield the same tokens, with what `link` makes of texts outside of links."""
    is_inside = False
    for token in children:
        if token.type in ("link_open", "link_close"):
            is_inside = token.type == "link_open"
        if token.type == "text" and not is_inside:
            yield from link(token)
        else:
            yield token


def _link_text(token: Token) -> Iterator[Token]:
    end = 0
    for found in URL.finditer(token.content):
        address = _without_end(found[0])
        href = _parser.normalizeLink(address)
        if not (_parser.validateLink(href) and ABSOLUTE.match(href)):
            continue
        yield citations.make_text(token, token.content[end : found.start()])
        yield Token("link_open", "a", 1, {"href": href}, level=token.level)
        yield citations.make_text(token, address)
        yield Token("link_close", "a", -1, level=token.level)
        end = found.start() + len(address)
    yield citations.make_text(token, token.content[end:])


def _without_end(address: str) -> str:
    """Return the address without a sentence's end and brackets opened before it."""
    end, surplus = len(address), address.count(")") - address.count("(")
    while end and (
        address[end - 1] in AFTER_URL or (address[end - 1] == ")" and surplus > 0)
    ):
        end -= 1
        surplus -= address[end] == ")"
    return address[:end]


def _parse_footnote(state: StateInline, silent: bool) -> bool:
    """Parse the mark of a footnote, which is raised.

    The note stays where it was written: later text changes no block, and pages have no
    addresses inside of messages.
    """
    place = (state.src, state.pos, state.posMax)
    begins = not state.pos or state.src[state.pos - 1] == "\n"
    found = (begins and NOTE.match(*place)) or MARK.match(*place)
    if not found:
        return False
    if not silent:
        state.push("sup_open", "sup", 1)
        state.push("text", "", 0).content = f"[{found[1]}]"
        state.push("sup_close", "sup", -1)
        state.pending = " " if found.re is NOTE else ""
    state.pos = found.end()
    return True


def _parse_pair(state: StateInline, silent: bool) -> bool:
    """Parse a tag of PAIRS with its closing one; another tag is text."""
    found = PAIR.match(state.src, state.pos, state.posMax)
    if not found:
        return False
    name, end = found[1].lower(), state.posMax
    closing = state.src.find(f"</{found[1]}>", found.end(), end)
    if closing <= found.end():
        return False
    if not silent:
        state.push(f"{name}_open", name, 1)
        state.pos, state.posMax = found.end(), closing
        state.md.inline.tokenize(state)
        state.posMax = end
        state.push(f"{name}_close", name, -1)
    state.pos = closing + len(name) + 3
    return True


def _parse_fence(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse a fence as CommonMark does; one of Markdown can contain other fences."""
    is_fence = fence(state, start, end, silent)
    if silent or not is_fence:
        return is_fence
    token, first, inner = state.tokens[-1], start + 1, 0
    opening, closed = inner_fence(token), is_closed(token)
    while opening and closed:
        lines = (n for n in range(first, state.line - 1) if not state.is_code_block(n))
        inner += sum(bool(opening.fullmatch(maths.read_line(state, n))) for n in lines)
        if not inner:
            break
        # What closed the code in it begins what goes on until the next closing line.
        inner, first = inner - 1, state.line
        fence(state, state.line - 1, end, silent)
        closed = is_closed(state.tokens.pop())
    if first > start + 1:
        last, indent = state.line - closed, state.sCount[start]
        token.map = [start, state.line]
        token.content = state.getLines(start + 1, last, indent, True)
    return True


def inner_fence(token: Token) -> re.Pattern[str] | None:
    """Return how lines begin code inside of this fence, if it is one of Markdown."""
    if token.info.strip().lower() not in ("markdown", "md", "mdx"):
        return None
    return re.compile(rf" {{0,3}}{token.markup}+[ \t]*[\w+#.-]{{1,20}}[ \t]*")


def is_closed(token: Token) -> bool:
    """Return if a fence has its closing line."""
    first, last = token.map
    has_last = token.content and not token.content.endswith("\n")
    return not has_last and token.content.count("\n") == last - first - 2


def _parse_reference(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse as CommonMark does, except for a footnote that is just an address."""
    if state.src.startswith("[^", state.bMarks[start] + state.tShift[start]):
        return False
    return reference(state, start, end, silent)


def _keep_spaces(state: StateInline, silent: bool) -> bool:
    """Parse the end of a line, without taking the spaces around it."""
    if state.src[state.pos] != "\n":
        return False
    if not silent:
        state.push("softbreak", "br", 0)
    state.pos += 1
    return True


def _make_parser() -> MarkdownIt:
    options = {"html": False, "linkify": False, "breaks": True, "maxNesting": 100}
    parser = MarkdownIt("commonmark", options)
    parser.inline = InlineParser()
    parser.configure("commonmark", options)
    parser.enable(["table", "strikethrough"]).disable("image")
    parser.core.ruler.after("inline", "usual", _add_usual)
    parser.inline.ruler.before("link", "footnote", _parse_footnote)
    parser.inline.ruler.before("autolink", "html_pair", _parse_pair)
    ended = ["paragraph", "reference", "blockquote", "list"]
    parser.block.ruler.at("fence", _parse_fence, {"alt": ended})
    parser.block.ruler.at("reference", _parse_reference)
    maths.plug_in(parser)
    return parser


_parser = _make_parser()
# What people type keeps the spaces in its lines and its tags, and four of them are no
# code.
_typed_parser = _make_parser().disable(["code", "html_pair"])
_typed_parser.inline.ruler.at("newline", _keep_spaces)
for rule in ("softbreak", "hardbreak"):
    _typed_parser.add_render_rule(rule, lambda *_: "<br>")


cache = Cache(CACHE_BYTES)


def render_markdown(
    text: str, *, is_typed: bool = False, cited: tuple[citations.CitedSource, ...] = ()
) -> SafeString:
    """Return the text as HTML: formatted, or escaped as it is where that is safer.

    In a user's own text, spaces are kept; the style of `.message.user` shows them. Its
    citations are linked.
    """
    make = partial(render_uncached, text, is_typed=is_typed, cited=cited)
    return cache.get_or_make((text, is_typed, cited), make)


def render_uncached(
    text: str, *, is_typed: bool = False, cited: tuple[citations.CitedSource, ...] = ()
) -> SafeString:
    links: dict[str, Any] = {}
    if cited and citations.are_few(text):
        links["cited"] = {source.number: source for source in cited}
    html = render_part(text, links, is_typed=is_typed) if is_cheap(text) else None
    return format_html('<pre class="wrap">{}</pre>', text) if html is None else html


def render_part(
    text: str, links: dict[str, Any], *, is_typed: bool = False
) -> SafeString | None:
    """Whole blocks of a text as HTML, or None when they are nested too deep.

    `links` keeps what the parts of one text define for those that follow.
    """
    html = _format_html(_typed_parser if is_typed else _parser, text, links)
    if html is None:
        return None
    clean = nh3.clean(
        html,
        tags=TAGS,
        attributes=ATTRIBUTES,
        url_schemes=SCHEMES,
        attribute_filter=_keep_attribute,
        link_rel="nofollow noopener noreferrer",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )
    return mark_safe(clean)  # noqa: S308 - nh3 has just cleaned it


def find_blocks(text: str, links: dict[str, Any]) -> list[Token] | None:
    """Return the tokens of a text's blocks, with their lines; None if nested too deep.

    Tokens inside the blocks are left out: they are what takes the time.
    """
    known = {"references": dict(links.get("references", {}))}
    source = text.replace("\r\n", "\n").replace("\r", "\n")
    tokens: list[Token] = []
    try:
        _parser.block.parse(source, _parser, known, tokens)
    except RecursionError:
        return None
    return None if any(token.level > MAX_LEVEL for token in tokens) else tokens


def is_cheap(text: str) -> bool:
    """Return if a text is short enough to be formatted."""
    return (
        len(text) <= MAX_CHARS
        and text.count("[") <= MAX_BRACKETS
        and text.count("|") <= MAX_CELLS
    )


def _format_html(parser: MarkdownIt, text: str, links: dict[str, Any]) -> str | None:
    """Return the HTML, or None if the text is nested deeper than the parser follows."""
    try:
        tokens = parser.parse(text, links)
        if any(token.level > MAX_LEVEL for token in tokens):
            return None
        return parser.renderer.render(tokens, parser.options, links)
    except RecursionError:
        return None


def code_class(info: str) -> str:
    """Return the class for code in the language that its fence names, or ""."""
    name = f"language-{info.split(maxsplit=1)[0]}" if info.strip() else ""
    return name if CODE_CLASS.fullmatch(name) else ""


def _keep_attribute(tag: str, name: str, value: str) -> str | None:
    if name == "href" and not ABSOLUTE.match(value):
        return None
    if tag == "code" and not CODE_CLASS.fullmatch(value):
        return None
    if tag in CLASSES and value not in CLASSES[tag]:
        return None
    if tag in maths.ATTRIBUTES and not maths.VALUE.fullmatch(value):
        return None
    return value
