"""References of replies: sources, links, names and pictures.

In the exports of ChatGPT they are marks of private-use characters, which only its own
pages draw; the text that those showed instead is in `content_references`.
"""

import re
from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _

from chatsite.features.importing.files.remainder import has_words
from chatsite.llm.streaming import clean_text

SEPARATOR = "\ue202"
# A mark, with the space before it, which goes with a mark that shows nothing.
MARK = re.compile("( ?)(\ue200([^\ue200\ue201]*)\ue201)")
# A mark that was cut off, and those around words that a source was found for.
STRAY = re.compile("\ue200(?:\\w|\ue202)*|[\ue201-\ue206]")
ADDRESS = re.compile(r"https?://\S+")
NAME = re.compile(r'\["[^"]*", ?"([^"]*)"')
# An address in a text, and what ChatGPT adds to it.
IN_TEXT = re.compile(r"https?://[^\s<>()\[\]\"']+")
ADDED = re.compile(r"[?&]utm_source=[^&#]*")
BRACKETS = str.maketrans("[]", "()")


def add_sources(text: str, cited: Any) -> str:
    """Return the text with a list of the cited pages whose address it lacks."""
    known = {ADDED.sub("", address) for address in IN_TEXT.findall(text)}
    lines = []
    for address, title in _list_pages(cited):
        bare = ADDED.sub("", address) or title
        if bare not in known:
            known.add(bare)
            title = title.translate(BRACKETS)
            lines.append(f"- [{title}](<{address}>)" if address else f"- {title}")
    if not lines:
        return text
    return "\n\n".join(filter(None, [text, "\n".join([_("Sources:"), "", *lines])]))


def _list_pages(value: Any, title: str = "") -> Iterator[tuple[str, str]]:
    """Yield each address with its title, or with that of its container.

    Files without an address are named, too.
    """
    if isinstance(value, dict):
        named = value.get("title") or value.get("name")
        title = " ".join(clean_text(named).split()) if has_words(named) else title
        address = value.get("url")
        if isinstance(address, str) and IN_TEXT.fullmatch(clean_text(address)):
            yield clean_text(address), title or clean_text(address)
        elif value.get("type") == "file" and title:
            yield "", title
    parts = value.values() if isinstance(value, dict) else value
    for part in parts if isinstance(value, dict | list) else ():
        yield from _list_pages(part, title)


def draw_citations(text: str, references: object) -> str:
    """Replace the marks by the words and links that readers saw.

    A mark that the export does not explain is read as far as possible, or removed.
    """
    shown = _by_mark(references)

    def replace(found: re.Match[str]) -> str:
        space, mark, inside = found.groups()
        known = shown.get(mark)
        words = known.pop() if known else _read_mark(inside)
        return space + words if words else ""

    return STRAY.sub("", MARK.sub(replace, text))


def _by_mark(references: object) -> dict[str, list[str]]:
    """Return the words for each mark, last first.

    Each is used once, so that the text does not outgrow its file.
    """
    shown: dict[str, list[str]] = {}
    for each in reversed(references if isinstance(references, list) else []):
        if isinstance(each, dict):
            mark, words = each.get("matched_text"), each.get("alt")
            if isinstance(mark, str) and isinstance(words, str):
                shown.setdefault(mark, []).append(clean_text(words))
    return shown


def _read_mark(inside: str) -> str:
    kind, *parts = inside.split(SEPARATOR)
    if kind == "url" and len(parts) == 2:
        label, address = parts
        return f"[{label}]({address})" if ADDRESS.fullmatch(address) else label
    if kind == "entity" and parts and (named := NAME.match(parts[0])):
        return named[1]
    return ""
