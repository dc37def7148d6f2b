"""Search over all conversations of one person: whole words in all of their messages
through the index, parts of words in the newest ones.

Both are bounded: whoever has written for years waits no longer than others.
"""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import connection
from django.db.models import QuerySet

from memory.models import Conversation, Message

from . import recall

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

LIMIT = 30
# Conversations whose words are looked up, the latest first; so many in one question.
MAX_CONVERSATIONS = 2_000
CONVERSATIONS_AT_ONCE = 200
MAX_WORDS = 8
# Of the newest messages every letter is read, which an index can not do for us.
MAX_READ = 3_000
EXCERPT_BEFORE, EXCERPT_AFTER = 60, 120

FIND = {
    "sqlite": """
        SELECT rowid FROM memory_recall_fts WHERE memory_recall_fts MATCH %s
        ORDER BY rowid DESC LIMIT %s""",
    # Kept apart from the limit, which would tempt the planner to read the whole table.
    "postgresql": """
        WITH found AS MATERIALIZED (
            SELECT message_id FROM memory_recallentry
            WHERE to_tsvector('simple', terms || ' ' || dates) @@ %s::tsquery
        ) SELECT message_id FROM found ORDER BY message_id DESC LIMIT %s""",
}
JOIN = {"sqlite": (" AND ", " OR "), "postgresql": (" & ", " | ")}


@dataclass(frozen=True, slots=True)
class Found:
    """A message, and the piece of it to show: what stands around the match."""

    message: Message
    before: str
    match: str
    after: str


def find_messages(
    user: "AbstractBaseUser", query: str, *, limit: int = LIMIT
) -> list[Found]:
    """The person's messages that have all words of the query, the newest first."""
    rows = Message.objects.filter(
        conversation__owner=user, conversation__deleted_at=None, deleted_at=None
    )
    own = Conversation.objects.filter(owner=user, deleted_at=None)
    # By their latest change, the newest first.
    ids = list(own.values_list("pk", flat=True)[:MAX_CONVERSATIONS])
    found = set(_find_words(ids, query, limit))
    # One letter is in every message; one Chinese character is a word.
    if len(found) < limit and (len(query) > 1 or not query.isascii()):
        found |= set(_find_parts(ids, query, limit))
    shown = rows.filter(pk__in=found).select_related("conversation")
    return [_excerpt(row, query) for row in shown.order_by("-pk")[:limit]]


def find_titles(user: "AbstractBaseUser", query: str) -> QuerySet[Conversation]:
    rows = Conversation.objects.filter(owner=user, deleted_at=None)
    return rows.filter(title__icontains=query)


def _find_words(ids: list[int], query: str, limit: int) -> list[int]:
    """Messages that have every word, by the terms of the index."""
    found: list[int] = []
    for start in range(0, len(ids), CONVERSATIONS_AT_ONCE):
        wanted = _expression(ids[start : start + CONVERSATIONS_AT_ONCE], query)
        if not wanted or len(found) >= limit:
            break
        with connection.cursor() as cursor:
            cursor.execute(FIND[connection.vendor], [wanted, limit])
            found += [pk for (pk,) in cursor.fetchall()]
    return found


def _expression(ids: list[int], query: str) -> str:
    """Each conversation has keys of its own, so the question names them all."""
    both, either = JOIN[connection.vendor]
    parts = []
    for pk in ids:
        entry = recall.describe(Message(conversation_id=pk, seq=0, text=query))
        keys = dict.fromkeys(entry["terms"].split())
        parts.append(both.join([*keys][:MAX_WORDS]))
    return either.join(f"({part})" for part in parts if part)


def _find_parts(ids: list[int], query: str, limit: int) -> list[int]:
    newest = Message.objects.filter(conversation__in=ids, deleted_at=None)
    newest = newest.order_by("-pk").values("pk")[:MAX_READ]
    rows = Message.objects.filter(pk__in=newest, text__icontains=query)
    return list(rows.order_by("-pk").values_list("pk", flat=True)[:limit])


def _excerpt(message: Message, query: str) -> Found:
    """Around the query as it was typed, or else around its first word."""
    text = " ".join(message.text.split())
    place = _search(text, query.strip())
    for word in () if place else query.split():
        # Without its ending: the index does not look at it either.
        place = _search(text, word) or _search(text, word[: max(3, len(word) - 3)])
        if place:
            break
    start, end = place or (0, 0)
    first = max(0, start - EXCERPT_BEFORE)
    last = end + EXCERPT_AFTER
    return Found(
        message,
        "…" * bool(first) + text[first:start],
        text[start:end],
        text[end:last] + "…" * (len(text) > last),
    )


def _search(text: str, words: str) -> tuple[int, int] | None:
    found = re.search(re.escape(words), text, re.IGNORECASE) if words else None
    return found.span() if found else None
