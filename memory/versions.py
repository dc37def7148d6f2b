"""The versions of a conversation's summary.

Functions list the active ones, add one, and put those out of force that a change of the
transcript made wrong.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import F, Max, Q, QuerySet

from .engine.compose import SummaryBlock
from .engine.summaries import dropped
from .engine.tokens import count_text
from .integrity import signatures
from .models import Conversation, Summary
from .models.message import read_langchain
from .ranges import Ranges, to_ranges
from .sql import prepared_rows


def active_summaries(conversation: Conversation) -> list[Summary]:
    """Return the summaries in force, oldest messages first.

    Their ranges tile 1..cutoff.
    """
    rows = _select_active(conversation=conversation.pk)
    for row in rows:
        row.conversation = conversation
    return rows


@prepared_rows()
def _select_active(conversation: Any) -> QuerySet[Summary]:
    rows = Summary.objects.filter(conversation=conversation)
    return rows.filter(status=Summary.Status.ACTIVE).order_by("first_seq")


def last_covered(summaries: Iterable[Any]) -> int:
    """Return the last message of these summaries, blocks or versions; 0 if none."""
    return max((summary.last_seq for summary in summaries), default=0)


def to_block(summary: Summary) -> SummaryBlock:
    return SummaryBlock(
        version=summary.version,
        level=summary.level,
        first_seq=summary.first_seq,
        last_seq=summary.last_seq,
        text=summary.text,
        tokens=count_text(summary.text),
        by_hand=summary.is_by_hand,
    )


def append_version(
    conversation: Conversation, *, replaces: Iterable[Summary] = (), **fields: object
) -> Summary:
    """Add the next version; call it inside the transaction that locked the row."""
    newest = conversation.summaries.aggregate(newest=Max("version"))["newest"] or 0
    summary = Summary(conversation=conversation, version=newest + 1, **fields)
    summary.save()
    replaced = [row.pk for row in replaces]
    summary.folded_from.set(replaced)
    if summary.status == Summary.Status.ACTIVE:
        Summary.objects.filter(pk__in=replaced).update(status=Summary.Status.SUPERSEDED)
    return summary


def bump_memory_version(conversation: Conversation) -> None:
    """Record that the model's view has changed: planned compactions are void."""
    rows = Conversation.objects.filter(pk=conversation.pk)
    rows.update(memory_version=F("memory_version") + 1)


def invalidate_summaries(
    conversation: Conversation,
    first: int,
    last: int | None = None,
    *,
    keep: Sequence[Summary] = (),
) -> None:
    """Put the summaries of messages `first`..`last` (None: to the end) out of force.

    Call it inside the transaction that changes these messages.

    Every version that covers one of them stays stale. What older versions say about the
    messages before `first` comes back as new versions; the other messages return to the
    window at once. Versions about messages after `last` are set aside: once the
    messages before them are compacted again, they are in force again as they are.

    `keep`: versions whose words a user wants all the same. They come back as new
    versions without sources: what their sources say is no longer true.
    """
    kept = {row.pk for row in keep}
    gone = [row for row in _retract_from(conversation, first) if row.pk not in kept]
    touched = conversation.summaries.filter(
        status__in=(Summary.Status.ACTIVE, Summary.Status.SUPERSEDED),
        last_seq__gte=first,
    )
    if last is not None:
        touched = touched.filter(first_seq__lte=last)
    touched.update(status=Summary.Status.STALE)
    for row in keep:
        row.status = Summary.Status.STALE
    _bring_back(conversation, gone, first)
    after = (
        []
        if last is None
        else [row for each in gone for row in _ancestors_after(each, last)]
    )
    superseded = Summary.Status.SUPERSEDED
    again = [
        copy_version(conversation, row, author=row.author, status=superseded)
        for row in keep
    ]
    set_aside(conversation, [*find_set_aside(conversation), *after, *again])
    if again:
        resume_set_aside(conversation)


def erase_versions(conversation: Conversation, seq: int) -> None:
    """Empty every version that covers message `seq`, which is deleted.

    The rows, their numbers and hashes stay. Call it after invalidate_summaries().
    """
    over = conversation.summaries.filter(first_seq__lte=seq, last_seq__gte=seq)
    is_stale = Q(status=Summary.Status.STALE)
    # A failed version has no text, unless it was imported.
    has_failed = Q(status__in=(Summary.Status.FAILED, Summary.Status.REJECTED))
    is_empty = Q(text="", structured__isnull=True, flags={})
    for row in over.filter(is_stale | (has_failed & ~is_empty)):
        Summary.objects.filter(pk=row.pk).update(**Summary.ERASED)
        row.refresh_from_db()
        signatures.renew_signature(row)


def set_aside(conversation: Conversation, rows: Iterable[Summary]) -> None:
    value = sorted({row.version for row in rows}) or None
    Conversation.objects.filter(pk=conversation.pk).update(set_aside=value)


def find_set_aside(conversation: Conversation) -> list[Summary]:
    """Return the versions set aside that can still come back.

    They are true, and no active one covers their messages. Of several that overlap, the
    first.
    """
    rows = Conversation.objects.filter(pk=conversation.pk)
    known = rows.values_list("set_aside", flat=True).get() or []
    free = last_covered(active_summaries(conversation)) + 1
    found = conversation.summaries.filter(
        version__in=known, status=Summary.Status.SUPERSEDED, first_seq__gte=free
    )
    apart: list[Summary] = []
    for row in found.order_by("first_seq", "-last_seq", "-version"):
        if row.first_seq > last_covered(apart):
            apart.append(row)
    return apart


def list_known(conversation: Conversation) -> list[Summary]:
    """Return the versions in force and those set aside."""
    return [*active_summaries(conversation), *find_set_aside(conversation)]


def resume_set_aside(conversation: Conversation) -> None:
    """Put versions that were set aside in force where they follow on.

    Call it inside the transaction that locked the row.
    """
    rows = find_set_aside(conversation)
    end = last_covered(active_summaries(conversation))
    back: list[Summary] = []
    for row in rows:
        if row.first_seq != end + 1:
            break
        back.append(row)
        end = row.last_seq
    Summary.objects.filter(pk__in=[row.pk for row in back]).update(
        status=Summary.Status.ACTIVE
    )
    set_aside(conversation, rows[len(back) :])


def retract_to(
    conversation: Conversation, seq: int, last: int | None = None
) -> list[Summary]:
    """End the active summaries before message `seq`, as a user wants it.

    Return those of messages after `last`, which can be set aside.
    """
    aside = find_set_aside(conversation)
    gone = _retract_from(conversation, seq)
    _bring_back(conversation, gone, seq)
    set_aside(conversation, [])
    if last is None:
        return []
    return [each for row in [*gone, *aside] for each in _ancestors_after(row, last)]


def replace_all(
    conversation: Conversation,
    wanted: list[Summary],
    *,
    author: AbstractBaseUser,
    later: Iterable[Summary] = (),
) -> None:
    """Put these summaries in force, and those of `later` that follow on."""
    rows = conversation.summaries.filter(status=Summary.Status.ACTIVE)
    rows.exclude(pk__in=[row.pk for row in wanted]).update(
        status=Summary.Status.SUPERSEDED
    )
    for summary in wanted:
        if summary.status != Summary.Status.ACTIVE:
            copy_version(conversation, summary, author=author)
    bump_memory_version(conversation)
    set_aside(conversation, later)
    resume_set_aside(conversation)


def put_in_force(conversation: Conversation, wanted: Sequence[Summary]) -> None:
    """Put these versions in force again as they are, to undo an action.

    They tile the messages from the first on. Versions after them stay, or wait for the
    messages between.
    """
    end = last_covered(wanted)
    behind = [row for row in list_known(conversation) if row.first_seq > end]
    rows = conversation.summaries
    rows.filter(status=Summary.Status.ACTIVE).update(status=Summary.Status.SUPERSEDED)
    rows.filter(pk__in=[row.pk for row in wanted]).update(status=Summary.Status.ACTIVE)
    bump_memory_version(conversation)
    set_aside(conversation, behind)
    resume_set_aside(conversation)


def by_hand(conversation: Conversation, first: int, last: int) -> list[Summary]:
    """Return the versions that a user wrote about any of messages `first`..`last`.

    They are in force or set aside.
    """
    rows = [row for row in list_known(conversation) if row.is_by_hand]
    return [row for row in rows if row.first_seq <= last and row.last_seq >= first]


def hidden_since(
    conversation: Conversation, summaries: Iterable[Summary]
) -> dict[int, Ranges]:
    """Return the messages that each outdated version covers and the model lost.

    By version number: the messages that the model saw when the version was written, and
    no longer sees.
    """
    stale = [row for row in summaries if row.status == Summary.Status.STALE]
    if not stale:
        return {}
    rows = conversation.messages.filter(seq__lte=last_covered(stale))
    rows = rows.exclude(excluded_at=None, superseded_at=None)
    times = [
        (seq, min(filter(None, when)))
        for seq, *when in rows.values_list("seq", "excluded_at", "superseded_at")
    ]
    return {
        row.version: to_ranges(
            seq
            for seq, at in times
            if row.first_seq <= seq <= row.last_seq and at > row.written_at
        )
        for row in stale
    }


def digest_view(conversation: Conversation, last: int) -> str:
    """Return a hash of the messages up to `last` that the model does not see.

    While it stays the same, what was written about them stays true.
    """
    rows = conversation.messages.filter(seq__lte=last).order_by("seq")
    away = rows.exclude(excluded_at=None, superseded_at=None, deleted_at=None)
    numbers = ",".join(map(str, away.values_list("seq", flat=True)))
    return hashlib.sha256(numbers.encode()).hexdigest()


def _bring_back(conversation: Conversation, gone: list[Summary], seq: int) -> None:
    """Copy the nearest ancestors that are still true, in place of `gone`."""
    for summary in gone:
        # The ancestors that are still true and cover the most.
        for older in _nearest_ancestors(summary, lambda row: row.last_seq < seq):
            copy_version(conversation, older)


def _retract_from(conversation: Conversation, seq: int) -> list[Summary]:
    """Put the active summaries from message `seq` on out of force; return them."""
    gone = [row for row in active_summaries(conversation) if row.last_seq >= seq]
    Summary.objects.filter(pk__in=[row.pk for row in gone]).update(
        status=Summary.Status.SUPERSEDED
    )
    bump_memory_version(conversation)
    return gone


def _ancestors_after(summary: Summary, last: int) -> list[Summary]:
    """Return the summary, or its ancestors, that begin after `last`."""
    if summary.first_seq > last:
        return [summary]
    return _nearest_ancestors(summary, lambda row: row.first_seq > last)


def _nearest_ancestors(
    summary: Summary, is_wanted: Callable[[Summary], bool]
) -> list[Summary]:
    """Return the nearest wanted ancestors, in the order of their messages.

    Ancestors of a wanted one are not searched. A running summary has an ancestor per
    compaction, which is too deep for recursion.
    """
    found: list[Summary] = []
    left = [summary]
    while left:
        row = left.pop()
        if row is not summary and is_wanted(row):
            found.append(row)
        else:
            left += row.folded_from.order_by("-first_seq")
    return found


def copy_version(
    conversation: Conversation,
    summary: Summary,
    *,
    author: AbstractBaseUser | None = None,
    text: str | None = None,
    kind: str = "restore",
    status: Summary.Status = Summary.Status.ACTIVE,
    flags: dict[str, list[str]] | None = None,
) -> Summary:
    """Add a version for the same range, with the same or another text.

    A copy of an outdated version is outdated too, and so are its sources.
    """
    is_stale = summary.status == Summary.Status.STALE
    flags = dict(summary.flags) if text is None else flags or {}
    return append_version(
        conversation,
        replaces=[] if is_stale else [summary],
        level=summary.level,
        generation=summary.generation,
        first_seq=summary.first_seq,
        last_seq=summary.last_seq,
        text=summary.text if text is None else text,
        structured=summary.structured if text is None else None,
        flags=flags | date_words([summary], is_stale=is_stale),
        trigger={"kind": kind, "value": summary.version, "limit": None},
        preset=summary.preset,
        policy_hash=summary.policy_hash,
        prompt_hash=summary.prompt_hash if text is None else "",
        model=summary.model if text is None else "",
        status=status,
        author=author,
    )


def check_edit(summary: Summary, text: str) -> dict[str, list[str]]:
    """Return the flags of another text for the messages of a version."""
    rows = summary.conversation.messages.filter(
        seq__range=(summary.first_seq, summary.last_seq),
        superseded_at=None,
        excluded_at=None,
        deleted_at=None,
    )
    return dropped.check_written(text, (), read_langchain(rows.order_by("seq")))


def date_words(
    sources: Iterable[Summary], *, is_stale: bool = False
) -> dict[str, list[str]]:
    """Return a flag with the date of the oldest words kept despite changes.

    These are words whose messages have changed since. Without such words there is no
    flag.
    """
    times = [row.written_at for row in sources if is_stale or "written_at" in row.flags]
    return {"written_at": [min(times).isoformat()]} if times else {}
