"""Memories of ChatGPT and Claude about a user, as facts that are offered here.

The words become one message of the user, so that each fact has its source. Nothing is
kept before the user says so.
"""

import hashlib
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from chatsite.features.importing.files.draft import (
    Draft,
    DraftMessage,
    from_talk,
    read_time,
)
from chatsite.features.importing.files.reading import SITES, ImportItemError
from chatsite.features.importing.files.remainder import Remainder
from chatsite.features.importing.tables import exported_lists
from memory.engine.facts.detection import MAX_CHARS

from .foreign import make_source
from .tool_parts import list_dicts, read_string

# Before the words of an entry: a mark of a list, and the day as ChatGPT writes it.
MARK = re.compile(r"(?:[-*•] +)?(?:\[[^\]\n]{0,40}\] ?-? ?)?")
# A heading is no fact.
HEADING = re.compile(r"#|\*\*[^*\n]{1,80}\*\*:?$")
SENTENCE = re.compile(r"[^.!?。！？\n]++[.!?。！？]*+")


def read_claude_memories(item: dict[str, Any]) -> Draft:
    """Return a draft of Claude's memory: of all conversations, and of projects."""
    projects = item.get("project_memories")
    more = projects.values() if isinstance(projects, dict) else ()
    texts = [item.get("conversations_memory"), *more]
    return _make_draft("claude", [*map(read_string, texts)], None)


def read_chatgpt_memories(item: dict[str, Any]) -> Draft:
    """Return a draft of the entries of ChatGPT's memory."""
    rows = list_dicts(item.get("memories"))
    times = (each.get("updated_at") or each.get("created_timestamp") for each in rows)
    at = max(filter(None, map(read_time, times)), default=None)
    return _make_draft(
        "chatgpt", [read_string(each.get("content")) for each in rows], at
    )


def _make_draft(site: str, texts: list[str], at: datetime | None) -> Draft:
    text = "\n".join(filter(None, (each.strip() for each in texts)))
    if not text:
        raise ImportItemError(_("it is empty."))
    # Another state of it is another import.
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    source = make_source(site, f"memory-{digest[:32]}")
    title = _("Memory of %(site)s") % {"site": SITES[site]}
    talk = [DraftMessage("user", text, at)]
    draft = from_talk(source, title, talk, SITES[site], Remainder())
    said = draft.bundle.messages[0]["text"]
    for each in exported_lists():
        if each.name == "facts":
            places = [*list_statements(said)]
            rows = [each.row(seq=1, start=a, end=b, state="offered") for a, b in places]
            draft.sections["facts"] = rows
    return draft


def list_statements(text: str) -> Iterator[tuple[int, int]]:
    """Yield the place of each statement: a line, or a sentence of one too long."""
    for line in re.finditer(r"[^\n]+", text):
        start = MARK.match(text, line.start(), line.end()).end()
        if HEADING.match(text, start, line.end()):
            continue
        pieces = [(start, line.end())]
        if line.end() - start > MAX_CHARS:
            found = SENTENCE.finditer(text, start, line.end())
            pieces = [each.span() for each in found]
        for first, last in pieces:
            words = text[first:last]
            first += len(words) - len(words.lstrip())
            last -= len(words) - len(words.rstrip())
            if 0 < last - first <= MAX_CHARS:
                yield first, last
