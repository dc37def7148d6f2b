"""*Does it still remember?*: a search in one conversation with each hit's location.

The model sees a hit word for word, only through a summary, or not at all.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from html import unescape

from django.db.models import QuerySet
from django.db.models.functions import Left, Length

from chatsite.features.tools.registry import label_of
from chatsite.turns import requests
from memory import versions
from memory.engine.attachments import unmark_attachments
from memory.engine.compose import Context
from memory.engine.search.terms import extract_terms, spell
from memory.engine.summaries import facts
from memory.models import Conversation, Message, Summary
from memory.search import recall
from memory.search.conversation_search import has_text

from .locations import Location, location_of, states_of

MAX_HITS = 20
# Kinds of places of which the mark says that the model does not see them.
HIDDEN = ("excluded", "superseded")
# Characters shown around the first match, which is looked for in so many: a tool's
# result can have millions.
BEFORE, AFTER = 60, 160
LOOKED_THROUGH = 200_000
# Characters of a message that are compared with its summary; what is named as missing;
# the share of its words that a summary has which says the same.
COMPARED, MAX_MISSING, SAME = 20_000, 3, 0.4
# As results of the search name the messages that they quote.
QUOTED_MESSAGE = re.compile(r"</?message(?: [^<>]{0,200})?>|<\w+ n=[^<>]{0,200}/>")


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A message that was found, with an excerpt; every second part of it matches."""

    seq: int
    role: str
    created_at: datetime
    parts: tuple[str, ...]
    location: Location
    pinned: bool
    # Whether less is sent of it than it has.
    is_in_part: bool
    # Whether the summary in its place says the same; None: there is no summary.
    in_summary: bool | None
    # Numbers, names and the like of the message that its summary lacks.
    missing: tuple[str, ...]
    # Whether that summary has no word of it.
    is_unsaid: bool
    # What of a hidden message is sent all the same; None: nothing, or it is not hidden.
    sent: "SentRemainder | None"
    # Whether it contains the query as it stands; else it is one of the best matches.
    is_exact: bool


@dataclass(frozen=True, slots=True)
class SentRemainder:
    """The place where the words of a hidden message are still sent.

    It has the facts there if not all of the message is.
    """

    summary: Summary | None = None
    seq: int | None = None
    facts: tuple[str, ...] = ()


def search_conversation(conversation: Conversation, query: str) -> list[SearchHit]:
    """Return the messages that contain the query, newest first.

    If there are none, those that match some of its words, best first. One more than
    MAX_HITS means that there are others which contain it.
    """
    query = query.strip()
    if not query:
        return []
    rows = conversation.messages.filter(has_text(query), deleted_at=None)
    rows = _without_long_texts(rows).order_by("-seq")[: MAX_HITS + 1]
    exact = list(rows)
    found = exact or _recall_messages(conversation, query)
    states = states_of(conversation, [row.seq for row in found])
    summaries = versions.active_summaries(conversation)
    texts = {summary.version: summary.text for summary in summaries}
    built = None
    # The query as it stands, or any of its words.
    wanted = sorted({query, *query.split()}, key=len, reverse=True)
    alternatives = "|".join(spell(words).pattern for words in wanted)
    pattern = re.compile(f"({alternatives})", re.IGNORECASE)
    hits = []
    for row in found:
        location = location_of(row, states.get(row.seq), summaries)
        summary = texts[location.version] if location.version else None
        text = row.head[:COMPARED]
        missing = _find_unsaid(text, summary) if summary else ()
        sent = None
        if location.kind in HIDDEN:
            built = built or requests.next_turn(conversation)
            sent = _find_sent(text, summaries, built.context)
        hits.append(
            SearchHit(
                seq=row.seq,
                role=row.role,
                created_at=row.created_at,
                parts=tuple(_split_excerpt(_words_of(row), pattern)),
                location=location,
                pinned=row.pinned_at is not None,
                is_in_part=bool(row.sent_chars),
                in_summary=None
                if summary is None
                else not missing and _says_same(text, summary),
                missing=missing[:MAX_MISSING],
                is_unsaid=bool(summary) and not _share_words(text, summary),
                sent=sent,
                is_exact=bool(exact),
            )
        )
    return hits


def _without_long_texts(rows: QuerySet[Message]) -> QuerySet[Message]:
    rows = rows.defer("text", "sent_text").annotate(sent_chars=Length("sent_text"))
    return rows.annotate(head=Left("text", LOOKED_THROUGH))


def _recall_messages(conversation: Conversation, query: str) -> list[Message]:
    hits = recall.recall_messages(conversation, query, limit=MAX_HITS)
    found = conversation.messages.filter(seq__in=[hit.seq for hit in hits])
    rows = {row.seq: row for row in _without_long_texts(found)}
    return [rows[hit.seq] for hit in hits if hit.seq in rows]


def _find_unsaid(text: str, summary: str) -> tuple[str, ...]:
    [lost] = facts.find_missing([text], [summary])
    quotes = [fact.text for fact in lost if fact.kind == "quote"]
    # What is quoted as a whole says the numbers and names in it.
    others = [
        fact.text for fact in lost if not any(fact.text in quote for quote in quotes)
    ]
    named = (text.rstrip(".!?。！？") for text in quotes + others)
    return tuple(dict.fromkeys(named))


def _says_same(text: str, summary: str) -> bool:
    return _share_words(text, summary) >= SAME


def _share_words(text: str, other: str) -> float:
    """Return the share of a text's words that another has.

    For a text without any words: all or nothing.
    """
    if words := set(extract_terms(text)):
        return len(words & set(extract_terms(other))) / len(words)
    signs = text.strip()
    return float(bool(signs) and signs in other)


def _find_sent(
    text: str, summaries: Sequence[Summary], sent: Context
) -> SentRemainder | None:
    """Return the place at which the next request says this text.

    It is a summary with some of it, or another message with all of it.
    """
    found = [fact for fact in facts.find_facts(text) if len(fact.text) > 1]
    for summary in summaries:
        said = facts.find_said(found, [summary.text])
        if _says_same(text, summary.text):
            return SentRemainder(summary)
        if said:
            named = [fact.text for fact in found if fact in said]
            return SentRemainder(summary, facts=tuple(named[:MAX_MISSING]))
    for section in sent.sections:
        if section.kind in ("system", "summaries"):
            continue
        for message in section.messages:
            if _says_same(text, message.text) and not _find_unsaid(text, message.text):
                return SentRemainder(seq=int(message.id) if message.id else None)
    return None


def _words_of(row: Message) -> str:
    """Return what readers see of a message.

    That is its text without the marks of what it quotes for a model, or the labels of
    the tools that it calls.
    """
    if row.role == Message.Role.TOOL:
        words, count = QUOTED_MESSAGE.subn(" ", row.head)
        return unescape(words) if count else words
    called = (call["name"] for call in row.tool_calls)
    return unmark_attachments(row.head) or ", ".join(map(label_of, called))


def _split_excerpt(text: str, pattern: re.Pattern[str]) -> list[str]:
    match = pattern.search(text)
    start = max(0, match.start() - BEFORE) if match else 0
    end = (match.end() if match else 0) + AFTER
    shown = " ".join(text[start:end].split())
    shown = ("…" if start else "") + shown + ("…" if end < len(text) else "")
    return pattern.split(shown)
