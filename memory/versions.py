"""The versions of a conversation's summary: which are active, adding one, and putting
those out of force that a change of the transcript made wrong.
"""

from collections.abc import Callable, Iterable
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import F, Max, QuerySet

from .engine.compose import SummaryBlock
from .engine.tokens import count_text
from .integrity import signatures
from .models import Conversation, Summary
from .sql import prepared_rows


def active(conversation: Conversation) -> list[Summary]:
    """The summaries in force, oldest messages first; their ranges tile 1..cutoff."""
    rows = _active(conversation=conversation.pk)
    for row in rows:
        row.conversation = conversation
    return rows


@prepared_rows()
def _active(conversation: Any) -> QuerySet[Summary]:
    rows = Summary.objects.filter(conversation=conversation)
    return rows.filter(status=Summary.Status.ACTIVE).order_by("first_seq")


def cutoff(summaries: Iterable[Summary]) -> int:
    """The last message number that a summary covers; the window comes after."""
    return max((summary.last_seq for summary in summaries), default=0)


def to_block(summary: Summary) -> SummaryBlock:
    return SummaryBlock(
        version=summary.version,
        level=summary.level,
        first_seq=summary.first_seq,
        last_seq=summary.last_seq,
        text=summary.text,
        tokens=count_text(summary.text),
    )


def append(
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


def bump(conversation: Conversation) -> None:
    """Note that the model's view has changed: compactions planned before are void."""
    rows = Conversation.objects.filter(pk=conversation.pk)
    rows.update(memory_version=F("memory_version") + 1)


def invalidate(conversation: Conversation, first: int, last: int | None = None) -> None:
    """Messages `first`..`last` (None: to the end) have changed: put their summaries out
    of force. Call it inside a transaction.

    Every version that covers one of them stays stale. What older versions say about
    the messages before `first` comes back as new versions; the other messages return
    to the window at once. Versions about messages after `last` are set aside: once the
    messages before them are compacted again, they are in force again as they are.
    """
    gone = _retract(conversation, first)
    touched = conversation.summaries.filter(
        status__in=(Summary.Status.ACTIVE, Summary.Status.SUPERSEDED),
        last_seq__gte=first,
    )
    if last is not None:
        touched = touched.filter(first_seq__lte=last)
    touched.update(status=Summary.Status.STALE)
    _bring_back(conversation, gone, first)
    after = [] if last is None else [row for each in gone for row in _after(each, last)]
    set_aside(conversation, [*waiting(conversation), *after])


def erase(conversation: Conversation, seq: int) -> None:
    """Empty every version that covers message `seq`, which is deleted: its row, its
    numbers and its hashes stay. Call it after `invalidate`."""
    rows = conversation.summaries.filter(
        status=Summary.Status.STALE, first_seq__lte=seq, last_seq__gte=seq
    )
    for row in rows:
        Summary.objects.filter(pk=row.pk).update(**Summary.ERASED)
        row.refresh_from_db()
        signatures.renew(row)


def set_aside(conversation: Conversation, rows: Iterable[Summary]) -> None:
    value = sorted({row.version for row in rows}) or None
    Conversation.objects.filter(pk=conversation.pk).update(set_aside=value)


def waiting(conversation: Conversation) -> list[Summary]:
    """The versions set aside that can still come back: they are true, and no active one
    covers their messages. Of several that overlap the first."""
    rows = Conversation.objects.filter(pk=conversation.pk)
    known = rows.values_list("set_aside", flat=True).get() or []
    free = cutoff(active(conversation)) + 1
    found = conversation.summaries.filter(
        version__in=known, status=Summary.Status.SUPERSEDED, first_seq__gte=free
    )
    apart: list[Summary] = []
    for row in found.order_by("first_seq", "-last_seq", "-version"):
        if row.first_seq > cutoff(apart):
            apart.append(row)
    return apart


def resume(conversation: Conversation) -> None:
    """Put what was set aside in force where it follows on; call it inside the
    transaction that locked the row."""
    rows = waiting(conversation)
    end = cutoff(active(conversation))
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


def retract_to(conversation: Conversation, seq: int) -> None:
    """Let the active summaries end before message `seq`, as a user wants it."""
    _bring_back(conversation, _retract(conversation, seq), seq)
    set_aside(conversation, [])


def replace_all(
    conversation: Conversation, wanted: list[Summary], *, author: AbstractBaseUser
) -> None:
    """Put these summaries in force and no others."""
    rows = conversation.summaries.filter(status=Summary.Status.ACTIVE)
    rows.exclude(pk__in=[row.pk for row in wanted]).update(
        status=Summary.Status.SUPERSEDED
    )
    for summary in wanted:
        if summary.status != Summary.Status.ACTIVE:
            copy(conversation, summary, author=author)
    bump(conversation)
    set_aside(conversation, [])


def _bring_back(conversation: Conversation, gone: list[Summary], seq: int) -> None:
    for summary in gone:
        for older in _still_true(summary, seq):
            copy(conversation, older)


def _retract(conversation: Conversation, seq: int) -> list[Summary]:
    """Put the active summaries from message `seq` on out of force; returns them."""
    gone = [row for row in active(conversation) if row.last_seq >= seq]
    Summary.objects.filter(pk__in=[row.pk for row in gone]).update(
        status=Summary.Status.SUPERSEDED
    )
    bump(conversation)
    return gone


def _after(summary: Summary, last: int) -> list[Summary]:
    """The summary or those ancestors of it that begin after `last`."""
    if summary.first_seq > last:
        return [summary]
    return _nearest_ancestors(summary, lambda row: row.first_seq > last)


def _still_true(summary: Summary, seq: int) -> list[Summary]:
    """The ancestors of `summary` that end before `seq` and reach furthest."""
    return _nearest_ancestors(summary, lambda row: row.last_seq < seq)


def _nearest_ancestors(
    summary: Summary, is_wanted: Callable[[Summary], bool]
) -> list[Summary]:
    """In the order of their messages; behind one that is wanted, none is looked for. A
    running summary has an ancestor per compaction, which is too deep for recursion."""
    found: list[Summary] = []
    left = [summary]
    while left:
        row = left.pop()
        if row is not summary and is_wanted(row):
            found.append(row)
        else:
            left += row.folded_from.order_by("-first_seq")
    return found


def copy(
    conversation: Conversation,
    summary: Summary,
    *,
    author: AbstractBaseUser | None = None,
    text: str | None = None,
    kind: str = "restore",
) -> Summary:
    """A new active version for the same range, with the same or another text."""
    return append(
        conversation,
        replaces=[summary],
        level=summary.level,
        generation=summary.generation,
        first_seq=summary.first_seq,
        last_seq=summary.last_seq,
        text=summary.text if text is None else text,
        structured=summary.structured if text is None else None,
        flags=summary.flags if text is None else {},
        trigger={"kind": kind, "value": summary.version, "limit": None},
        preset=summary.preset,
        policy_hash=summary.policy_hash,
        prompt_hash=summary.prompt_hash if text is None else "",
        model=summary.model if text is None else "",
        status=Summary.Status.ACTIVE,
        author=author,
    )
