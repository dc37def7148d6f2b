"""*What did it forget?*: a search in one conversation that says of each hit whether the
model sees it word for word, only through a summary, or not at all.
"""

import re
from dataclasses import dataclass
from datetime import datetime

from memory import versions
from memory.models import Conversation, Message, Summary
from memory.search import recall

from . import locations

MAX_HITS = 20
# Characters shown around the first match.
BEFORE, AFTER = 60, 160


@dataclass(frozen=True, slots=True)
class Finding:
    """A message that was found, with an excerpt; every second part of it matches."""

    seq: int
    role: str
    created_at: datetime
    parts: tuple[str, ...]
    mark: locations.Mark
    pinned: bool
    # Whether the summary in its place has the words too; None: there is no summary.
    in_summary: bool | None


def find(conversation: Conversation, query: str) -> list[Finding]:
    """The messages that contain the query, newest first; if there are none, those that
    match some of its words, best first."""
    query = query.strip()
    if not query:
        return []
    rows = _containing(conversation, query) or _matching(conversation, query)
    states = locations.states_of(conversation, [row.seq for row in rows])
    summaries = versions.active(conversation)
    return [_finding(row, query, states.get(row.seq), summaries) for row in rows]


def _containing(conversation: Conversation, query: str) -> list[Message]:
    rows = conversation.messages.filter(deleted_at=None, text__icontains=query)
    return list(rows.order_by("-seq")[:MAX_HITS])


def _matching(conversation: Conversation, query: str) -> list[Message]:
    hits = recall.search(conversation, query, limit=MAX_HITS)
    found = conversation.messages.filter(seq__in=[hit.seq for hit in hits])
    rows = {row.seq: row for row in found}
    return [rows[hit.seq] for hit in hits if hit.seq in rows]


def _finding(
    row: Message, query: str, state: str | None, summaries: list[Summary]
) -> Finding:
    mark = locations.mark_of(row, state, summaries)
    in_force = {summary.version: summary.text for summary in summaries}
    return Finding(
        seq=row.seq,
        role=row.role,
        created_at=row.created_at,
        parts=tuple(_excerpt(row.text, _pattern(query))),
        mark=mark,
        pinned=row.pinned_at is not None,
        in_summary=_has(in_force[mark.version], query) if mark.version else None,
    )


def _has(text: str, query: str) -> bool:
    """Whether all words of the query are in the text."""
    compacted = text.casefold()
    return all(word in compacted for word in query.casefold().split())


def _pattern(query: str) -> re.Pattern[str]:
    """The query as it stands, or any of its words."""
    words = sorted({query, *query.split()}, key=len, reverse=True)
    return re.compile("(" + "|".join(map(re.escape, words)) + ")", re.IGNORECASE)


def _excerpt(text: str, pattern: re.Pattern[str]) -> list[str]:
    match = pattern.search(text)
    start = max(0, match.start() - BEFORE) if match else 0
    end = (match.end() if match else 0) + AFTER
    shown = " ".join(text[start:end].split())
    shown = ("…" if start else "") + shown + ("…" if end < len(text) else "")
    return pattern.split(shown)
