"""Search in all conversations of a user.

Whole words are found in all messages through the index, parts of words in the newest
ones. Both have limits, so that a user with years of messages waits no longer than
others.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import connection
from django.db.models import Q, QuerySet

from memory.engine.search.terms import list_forms, spell
from memory.models import Conversation, Message

from . import recall

LIMIT = 30
# If only a user's own words count, most hits may be messages of others.
LIMIT_OF_ALL = 200
# The most conversations that are searched, the latest first, and per statement.
MAX_CONVERSATIONS = 2_000
CONVERSATIONS_AT_ONCE = 200
MAX_WORDS = 8
# Parts of words are not in the index, so this many of the newest messages are read.
MAX_READ = 3_000
EXCERPT_BEFORE, EXCERPT_AFTER = 60, 120

FIND = {
    "sqlite": """
        SELECT rowid FROM memory_recall_fts WHERE memory_recall_fts MATCH %s
        ORDER BY rowid DESC LIMIT %s""",
    # MATERIALIZED: with the limit beside it, the planner might read the whole table.
    "postgresql": """
        WITH found AS MATERIALIZED (
            SELECT message_id FROM memory_recallentry
            WHERE to_tsvector('simple', terms || ' ' || dates) @@ %s::tsquery
        ) SELECT message_id FROM found ORDER BY message_id DESC LIMIT %s""",
}
# Conditions on copies, which are found in the conversation of the original.
copies: list[Q] = []
# Searches in the long files of these conversations; a message has only the beginning of
# its file. Given keys, a query and a limit, they return the messages with every word of
# the query: the text to show by key.
in_files: list[Callable[[Sequence[int], str, int], dict[int, str]]] = []
JOIN = {"sqlite": (" AND ", " OR "), "postgresql": (" & ", " | ")}


@dataclass(frozen=True, slots=True)
class FoundMessage:
    """A message, and the excerpt to show: the match and the text around it."""

    message: Message
    before: str
    match: str
    after: str


def find_messages(
    user: AbstractBaseUser,
    query: str,
    among: QuerySet[Conversation] | None = None,
    *,
    only_own: bool = False,
) -> list[FoundMessage]:
    """Return the user's messages with all words of the query, the newest first.

    `among`: conversations of list_searched(). `only_own`: messages of the user that are
    neither hidden from the model nor replaced by an edit.
    """
    rows = Message.objects.filter(
        conversation__owner=user, conversation__deleted_at=None, deleted_at=None
    )
    limit = LIMIT_OF_ALL if only_own else LIMIT
    if only_own:
        said = {"excluded_at": None, "superseded_at": None}
        rows = rows.filter(role=Message.Role.USER, **said)
    own = list_searched(user) if among is None else among
    # The latest change first.
    keys = list(own.values_list("pk", "tree", "long_files")[:MAX_CONVERSATIONS])
    ids = [pk for pk, *_ in keys]
    if any(tree for _pk, tree, _files in keys):
        limit = LIMIT_OF_ALL
        for each in copies:
            rows = rows.exclude(each)
    found = set(_find_words(ids, query, limit))
    # One letter is in every message; one Chinese character is a word.
    if len(found) < LIMIT and (len(query) > 1 or not query.isascii()):
        newest = Message.objects.filter(conversation__in=ids, deleted_at=None)
        newest = newest.order_by("-pk").values("pk")[:MAX_READ]
        parts = Message.objects.filter(has_text(query), pk__in=newest)
        found |= set(parts.order_by("-pk").values_list("pk", flat=True)[:limit])
    # The content of a file is not the user's own words.
    has_file = [] if only_own else [pk for pk, _tree, files in keys if files]
    texts = _find_in_files(has_file, query, limit, found)
    shown = rows.filter(pk__in=found.union(texts)).select_related("conversation")
    return [
        _excerpt_message(row, query, texts.get(row.pk, row.text))
        for row in shown.order_by("-pk")[:LIMIT]
    ]


def has_text(query: str) -> Q:
    """Match messages that contain the query, however its accents are encoded."""
    forms = (Q(text__icontains=form) for form in list_forms(query))
    return Q(*forms, _connector=Q.OR)


def list_searched(user: AbstractBaseUser) -> QuerySet[Conversation]:
    """Return the conversations that a search of the user covers."""
    return Conversation.objects.filter(
        owner=user, deleted_at=None, temporary_until=None
    )


def _find_words(ids: list[int], query: str, limit: int) -> list[int]:
    """Return the messages that have every word, by the terms of the index."""
    found: list[int] = []
    both, either = JOIN[connection.vendor]
    for start in range(0, len(ids), CONVERSATIONS_AT_ONCE):
        parts = []
        # Each conversation has its own keys, so the statement contains all of them.
        for pk in ids[start : start + CONVERSATIONS_AT_ONCE]:
            entry = recall.describe_entry(
                Message(conversation_id=pk, seq=0, text=query)
            )
            keys = dict.fromkeys(entry["terms"].split())
            parts.append(both.join([*keys][:MAX_WORDS]))
        wanted = either.join(f"({part})" for part in parts if part)
        if not wanted or len(found) >= limit:
            break
        with connection.cursor() as cursor:
            cursor.execute(FIND[connection.vendor], [wanted, limit])
            found += [pk for (pk,) in cursor.fetchall()]
    return found


def _find_in_files(
    ids: list[int], query: str, limit: int, known: set[int]
) -> dict[int, str]:
    """Return the texts of messages that are found only in their long files."""
    texts: dict[int, str] = {}
    for find in in_files if ids else ():
        texts |= find(ids, query, limit)
    return {pk: text for pk, text in texts.items() if pk not in known}


def _excerpt_message(message: Message, query: str, whole: str) -> FoundMessage:
    """Return an excerpt around the query as typed, or around its first word."""
    text = " ".join(whole.split())
    place = _find_text(text, query.strip())
    for word in () if place else query.split():
        # Without its ending, which the index ignores too.
        place = _find_text(text, word) or _find_text(
            text, word[: max(3, len(word) - 3)]
        )
        if place:
            break
    start, end = place or (0, 0)
    first = max(0, start - EXCERPT_BEFORE)
    last = end + EXCERPT_AFTER
    return FoundMessage(
        message,
        "…" * bool(first) + text[first:start],
        text[start:end],
        text[end:last] + "…" * (len(text) > last),
    )


def _find_text(text: str, words: str) -> tuple[int, int] | None:
    found = spell(words).search(text) if words else None
    return found.span() if found else None
