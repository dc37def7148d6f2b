"""One step of a conversation's memory: a version, its sources, and its lost facts.

Facts that came from nowhere are marked, too.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from django.core.paginator import Paginator
from django.db.models import Prefetch, QuerySet

from chatsite.pages import diff as differ
from memory import versions
from memory.engine.summaries import facts, material
from memory.integrity import signatures
from memory.models import Conversation, Message, Summary
from memory.ranges import in_ranges

from .. import redaction
from ..redaction import select_readable, show_row_text
from ..rights import Rights
from . import picture

PAGE_VERSIONS = 40
PAGE_MESSAGES = 100
# Enough to draw; what is in force is merged long before it is so many.
MAX_IN_FORCE = 400
# More is shown without marks: reading it for facts would keep the page waiting.
MAX_CHARS = 200_000
RANGES = Summary.objects.only("version", "first_seq", "last_seq", "status")

Values = dict[str, Any]
# A stretch of text, and whether it is marked.
Piece = tuple[str, bool]


def _prefetch_ranges(rows: QuerySet[Summary]) -> QuerySet[Summary]:
    rows = rows.select_related("author")
    return rows.prefetch_related(Prefetch("folded_from", RANGES))


def find_step_version(
    conversation: Conversation, rights: Rights, version: int | None
) -> Summary | None:
    """Return a version, without a number the newest; None if there is none."""
    rows = _prefetch_ranges(
        select_readable(conversation.summaries, rights, redaction.SUMMARY)
    )
    rows = rows if version is None else rows.filter(version=version)
    return rows.order_by("-version").first()


def find_neighbours(conversation: Conversation, shown: Summary) -> Values:
    """Return the versions around the shown one, as a list and as two maps."""
    first = (shown.version - 1) // PAGE_VERSIONS * PAGE_VERSIONS + 1
    last = first + PAGE_VERSIONS - 1
    rows = _prefetch_ranges(conversation.summaries.defer(*redaction.SUMMARY))
    listed = list(rows.filter(version__range=(first, last)).order_by("version"))
    numbers = conversation.summaries.order_by("version")
    numbers = numbers.values_list("version", flat=True)
    newest_version = numbers.last()
    active = conversation.summaries.filter(status=Summary.Status.ACTIVE)
    in_force = active.defer(*redaction.SUMMARY).order_by("first_seq")[:MAX_IN_FORCE]
    newest = max(conversation.next_seq - 1, shown.last_seq)
    place = (newest, shown.version)
    return {
        "versions": listed,
        "history": picture.of_versions(conversation.pk, listed, *place),
        "in_force": picture.of_levels(conversation.pk, list(in_force), *place),
        "first": first,
        "last": min(last, newest_version),
        "newest": newest_version,
        "previous": numbers.filter(version__lt=shown.version).last(),
        "next": numbers.filter(version__gt=shown.version).first(),
        # A version of the page before and of the one after.
        "before": first - 1,
        "after": last + 1,
    }


def step_of(
    conversation: Conversation, rights: Rights, shown: Summary, page: int | None
) -> Values:
    """Return the version with its sources: {row, pieces, lost} for each."""
    older_ranges = list(shown.folded_from.all())
    older = select_readable(conversation.summaries, rights, redaction.SUMMARY)
    older = older.filter(pk__in=[row.pk for row in older_ranges])
    older = list(older.order_by("first_seq"))
    found = _select_fresh(conversation, rights, shown, older_ranges)
    shown_page = Paginator(found, PAGE_MESSAGES).get_page(page)
    messages = list(shown_page)
    rows = [*older, *messages]
    lost: list[list[str]] | None = [[]] * len(rows)
    invented: list[str] = []
    if rights.content:
        lost = _find_lost([row.text for row in rows], [shown.text])
        is_whole = not shown_page.has_other_pages()
        invented = _find_invented(shown, older, messages if is_whole else None)
    sources = [
        {
            "row": row,
            "pieces": mark_facts(show_row_text(row, rights), each),
            "lost": len(each),
        }
        for row, each in zip(rows, lost or [[]] * len(rows), strict=True)
    ]
    return {
        "row": shown,
        "pieces": mark_facts(show_row_text(shown, rights), invented),
        "invented": len(invented),
        # None: not looked at, as its text was not read.
        "holds": signatures.has_valid_signature(shown) if rights.content else None,
        "sources": sources[: len(older)],
        "messages": sources[len(older) :],
        "successors": list(RANGES.filter(folded_from=shown).order_by("version")),
        "page": shown_page,
        # The address of another page of its messages, up to the page's number.
        "more": f"v={shown.version}&",
        # Whether the texts were too long to be read for facts.
        "unmarked": lost is None,
    }


def mark_facts(text: str, found: Sequence[str]) -> list[Piece]:
    """Return the text in pieces, those marked that are one of the facts found."""
    if not found:
        return [(text, False)] if text else []
    longest_first = sorted(filter(None, found), key=len, reverse=True)
    pattern = "|".join(map(_match_whole, longest_first))
    parts = re.split(f"({pattern})", text)
    return [(part, bool(n % 2)) for n, part in enumerate(parts) if part]


def _match_whole(fact: str) -> str:
    """Return a pattern of a fact, not as part of a longer word or number."""
    before = r"(?<![A-Za-z0-9])" if fact[0].isalnum() and fact[0].isascii() else ""
    after = r"(?![A-Za-z0-9])" if fact[-1].isalnum() and fact[-1].isascii() else ""
    return before + re.escape(fact) + after


def _find_lost(
    texts: Sequence[str], summaries: Iterable[str]
) -> list[list[str]] | None:
    """Return the facts of each text that the summaries lack; None if it is too much."""
    if sum(map(len, texts)) > MAX_CHARS:
        return None
    return list(facts.not_carried_over(texts, summaries))


def _find_invented(
    shown: Summary, older: list[Summary], messages: list[Message] | None
) -> list[str]:
    """Return the facts that were noted when it was written, and invented ones.

    The latter only if all of its source is here: facts that are not in it now.
    """
    flags = shown.flags if isinstance(shown.flags, dict) else {}
    noted = flags.get("unsupported")
    found = list(noted) if isinstance(noted, list) else []
    if messages is not None and shown.text:
        texts = [material.describe_text(row.to_langchain()) for row in messages]
        sources = [versions.to_block(row).text for row in older] + texts
        dates = [row.created_at.date() for row in messages]
        if sum(map(len, sources)) <= MAX_CHARS:
            found += facts.find_unsupported(shown.text, sources, dates)
    return list(dict.fromkeys(map(str, found)))


def _select_fresh(
    conversation: Conversation, rights: Rights, shown: Summary, older: list[Summary]
) -> QuerySet[Message]:
    """Return the messages that this version was the first to cover."""
    fresh = []
    start, end = shown.first_seq, shown.last_seq
    for first, last in sorted((row.first_seq, row.last_seq) for row in older):
        if first > start:
            fresh.append((start, min(first - 1, end)))
        start = max(start, last + 1)
    if start <= end:
        fresh.append((start, end))
    rows = select_readable(conversation.messages, rights, redaction.MESSAGE)
    return rows.filter(in_ranges(fresh)).order_by("seq")


def compare_versions(conversation: Conversation, old: int, new: int) -> Values:
    """Return what changed from one version to another."""
    rows = conversation.summaries.filter(version__in=(old, new))
    texts = dict(rows.values_list("version", "text"))
    for version in (old, new):
        if version not in texts:
            return {"missing": version}
    return {"old": old, "new": new, "pieces": differ.diff_words(texts[old], texts[new])}
