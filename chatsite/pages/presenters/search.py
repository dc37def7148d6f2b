"""*Does it still remember?*: a search in one conversation that says of each hit whether
the model sees it word for word, only through a summary, or not at all.
"""

import re
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet
from django.db.models.functions import Left

from memory import versions
from memory.models import Conversation, Message
from memory.search import recall

from .locations import Location, location_of, states_of

MAX_HITS = 20
# Characters shown around the first match, which is looked for in so many: a tool's
# result can have millions.
BEFORE, AFTER = 60, 160
LOOKED_THROUGH = 200_000


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A message that was found, with an excerpt; every second part of it matches."""

    seq: int
    role: str
    created_at: datetime
    parts: tuple[str, ...]
    location: Location
    pinned: bool
    # Whether the summary in its place has the words too; None: there is no summary.
    in_summary: bool | None
    # Whether it contains the query as it stands; else it is one of the best matches.
    is_exact: bool


def find(conversation: Conversation, query: str) -> list[SearchHit]:
    """The messages that contain the query, newest first; if there are none, those that
    match some of its words, best first. One more than MAX_HITS says that there are
    others which contain it."""
    query = query.strip()
    if not query:
        return []
    rows = conversation.messages.filter(deleted_at=None, text__icontains=query)
    rows = _without_long_texts(rows).order_by("-seq")[: MAX_HITS + 1]
    exact = list(rows)
    found = exact or _recall(conversation, query)
    states = states_of(conversation, [row.seq for row in found])
    summaries = versions.active(conversation)
    texts = {summary.version: summary.text.casefold() for summary in summaries}
    words = query.casefold().split()
    # The query as it stands, or any of its words.
    wanted = sorted({query, *query.split()}, key=len, reverse=True)
    alternatives = "|".join(map(re.escape, wanted))
    pattern = re.compile(f"({alternatives})", re.IGNORECASE)
    hits = []
    for row in found:
        location = location_of(row, states.get(row.seq), summaries)
        summary = texts[location.version] if location.version else None
        hits.append(
            SearchHit(
                seq=row.seq,
                role=row.role,
                created_at=row.created_at,
                parts=tuple(_excerpt(row.head, pattern)),
                location=location,
                pinned=row.pinned_at is not None,
                in_summary=None
                if summary is None
                else all(word in summary for word in words),
                is_exact=bool(exact),
            )
        )
    return hits


def _without_long_texts(rows: QuerySet[Message]) -> QuerySet[Message]:
    return rows.defer("text", "sent_text").annotate(head=Left("text", LOOKED_THROUGH))


def _recall(conversation: Conversation, query: str) -> list[Message]:
    hits = recall.search(conversation, query, limit=MAX_HITS)
    found = conversation.messages.filter(seq__in=[hit.seq for hit in hits])
    rows = {row.seq: row for row in _without_long_texts(found)}
    return [rows[hit.seq] for hit in hits if hit.seq in rows]


def _excerpt(text: str, pattern: re.Pattern[str]) -> list[str]:
    match = pattern.search(text)
    start = max(0, match.start() - BEFORE) if match else 0
    end = (match.end() if match else 0) + AFTER
    shown = " ".join(text[start:end].split())
    shown = ("…" if start else "") + shown + ("…" if end < len(text) else "")
    return pattern.split(shown)
