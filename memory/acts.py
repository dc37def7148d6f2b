"""What a person does to the model's view. Every act is a mark or a new version, never a
change of an old one, and can be undone; only deleting a message is for good.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from django.db import models, transaction
from django.db.models.functions import Now

from . import folding, recall, transcript, versions
from .engine.policy import Policy
from .models import Conversation, Message, Summary

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser


class ActError(ValueError):
    """Something that can not be done; the message says why."""


@transaction.atomic
def exclude(conversation: Conversation, seqs: Iterable[int]) -> None:
    """Leave messages out of the model's view; they stay in the transcript."""
    rows = _rows(conversation, seqs).filter(excluded_at=None)
    _change(conversation, rows, excluded_at=Now())


@transaction.atomic
def include(conversation: Conversation, seqs: Iterable[int]) -> None:
    """Bring messages back that were left out."""
    rows = _rows(conversation, seqs).exclude(excluded_at=None)
    _change(conversation, rows, excluded_at=None)


@transaction.atomic
def pin(conversation: Conversation, seq: int) -> None:
    """Keep a message word for word in the model's view after it was folded."""
    _mark_pin(conversation, seq, pinned_at=Now())


@transaction.atomic
def unpin(conversation: Conversation, seq: int) -> None:
    _mark_pin(conversation, seq, pinned_at=None)


@transaction.atomic
def delete(conversation: Conversation, seq: int) -> None:
    """Take the text of a message away for good; its number stays, and says so.

    Requests that were built from it can no longer be rebuilt.
    """
    rows = _rows(conversation, [seq])
    _change(conversation, rows, text="", tool_calls=[], tokens=0, deleted_at=Now())
    recall.index(conversation.messages.get(seq=seq))


@transaction.atomic
def restore(
    conversation: Conversation, version: int, *, author: "AbstractBaseUser"
) -> Summary:
    """Put an older version in force again, as a new version.

    The messages after its range return to the window. Raises ActError when there is
    no such version, when its messages have changed since, or when nothing would stand
    for the messages before it.
    """
    transcript.lock(conversation)
    summary = _find(conversation, version)
    if summary.status != Summary.Status.SUPERSEDED:
        raise ActError(f"Version {version} is {summary.status}: it can not come back.")
    versions.retract_to(conversation, summary.first_seq)
    if versions.cutoff(versions.active(conversation)) != summary.first_seq - 1:
        raise ActError(
            f"No summary stands for the messages before #{summary.first_seq}."
        )
    new = versions.copy(conversation, summary, author=author)
    folding.mark_due(conversation.pk)
    return new


@transaction.atomic
def reinstate(
    conversation: Conversation, wanted: Iterable[int], *, author: "AbstractBaseUser"
) -> None:
    """Undo: put exactly these versions in force again, those gone as new versions.

    Raises ActError when there is no such version, or when what they stood for has
    changed since.
    """
    transcript.lock(conversation)
    summaries = [_find(conversation, version) for version in sorted(set(wanted))]
    summaries.sort(key=lambda summary: summary.first_seq)
    versions.replace_all(conversation, _check_tiles(summaries), author=author)


def _check_tiles(summaries: list[Summary]) -> list[Summary]:
    """The summaries, if they can be in force together."""
    usable = (Summary.Status.ACTIVE, Summary.Status.SUPERSEDED)
    end = 0
    for summary in summaries:
        if summary.status not in usable or summary.first_seq != end + 1:
            raise ActError("That view can not come back: what it said has changed.")
        end = summary.last_seq
    return summaries


@transaction.atomic
def rewrite(
    conversation: Conversation, version: int, text: str, *, author: "AbstractBaseUser"
) -> Summary:
    """Replace the text of an active summary by a person's, as a new version."""
    transcript.check_text(text)
    transcript.lock(conversation)
    summary = _find(conversation, version)
    if summary.status != Summary.Status.ACTIVE:
        raise ActError(f"Version {version} is not in force; restore it first.")
    new = versions.copy(conversation, summary, author=author, text=text, kind="edit")
    versions.bump(conversation)
    return new


@transaction.atomic
def rebuild(conversation: Conversation) -> None:
    """Void all summaries; the fold job makes them anew from the transcript."""
    transcript.lock(conversation)
    versions.retract_to(conversation, 1)
    folding.reset(conversation)


@transaction.atomic
def set_policy(conversation: Conversation, value: dict[str, object]) -> None:
    """Remember the conversation in another way from now on; nothing made is lost.

    Raises PolicyError when the policy is wrong.
    """
    Policy.load(value)
    transcript.lock(conversation)
    conversation.policy = value
    conversation.save(update_fields=["policy"])
    versions.bump(conversation)
    folding.reset(conversation)


def _rows(conversation: Conversation, seqs: Iterable[int]) -> models.QuerySet[Message]:
    transcript.lock(conversation)
    return conversation.messages.filter(seq__in=list(seqs), deleted_at=None)


def _change(
    conversation: Conversation, rows: models.QuerySet[Message], **values: object
) -> None:
    """Update the rows and take back the summaries that stand for any of them."""
    seqs = sorted(rows.values_list("seq", flat=True))
    if not seqs:
        raise ActError("There is no such message, or nothing to change about it.")
    conversation.messages.filter(seq__in=seqs).update(**values)
    versions.invalidate(conversation, seqs[0], seqs[-1])
    folding.mark_due(conversation.pk)


def _mark_pin(conversation: Conversation, seq: int, **values: object) -> None:
    if not _rows(conversation, [seq]).update(**values):
        raise ActError(f"There is no message #{seq}.")


def _find(conversation: Conversation, version: int) -> Summary:
    summary = conversation.summaries.filter(version=version).first()
    if summary is None:
        raise ActError(f"There is no version {version}.")
    return summary
