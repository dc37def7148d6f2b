"""Actions of a user on the model's view.

Each action is a mark or a new version, never a change of an old one, and can be undone.
Only deleting a message is permanent.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NoReturn

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import models, transaction
from django.db.models.functions import Now
from django.dispatch import Signal
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from . import prompts, transcript, versions
from .compaction import lease
from .engine.policy import Policy
from .integrity import left_rows, signatures
from .models import Conversation, Message, Summary
from .search import recall
from .transcript import LAST_SEQ, ActionError
from .view import tool_groups, variation

# Sent inside the transaction that deletes a message, with `conversation`, `seq` and
# `edited`. Apps that keep data made of messages delete theirs.
message_deleted = Signal()


class ReplacedError(ActionError):
    """Version `by` has replaced the given one in the meantime."""

    def __init__(self, message: str, by: int) -> None:
        super().__init__(message)
        self.by = by


class EditChoice(StrEnum):
    """The choice for an edited summary when a message that it covers changes.

    A message changes when it is hidden, shown or deleted.
    """

    ASK = "ask"
    KEEP = "keep"
    WRITE = "write"


class EditedError(ActionError):
    """A user wrote these summaries and has to choose what becomes of them.

    `restored`: the version that would replace them.
    """

    def __init__(
        self,
        summaries: Sequence[Summary],
        *,
        deletes: bool = False,
        restored: int | None = None,
    ) -> None:
        text = ngettext(
            "Your edited summary %(versions)s covers this message.",
            "Your edited summaries %(versions)s cover this message.",
            len(summaries),
        )
        if deletes:
            text = ngettext(
                "Your edited summary %(versions)s covers this message and may repeat "
                "its words.",
                "Your edited summaries %(versions)s cover this message and may repeat "
                "its words.",
                len(summaries),
            )
        if restored:
            text = ngettext(
                "The edited summary %(versions)s covers messages of v%(restored)s and "
                "others. It would no longer be used.",
                "The edited summaries %(versions)s cover messages of v%(restored)s and "
                "others. They would no longer be used.",
                len(summaries),
            )
        self.summaries = summaries
        names = ", ".join(f"v{row.version}" for row in summaries)
        super().__init__(text % {"versions": names, "restored": restored})


@transaction.atomic
def exclude_messages(
    conversation: Conversation,
    seqs: Iterable[int],
    *,
    edited: EditChoice = EditChoice.ASK,
) -> None:
    """Hide messages from the model; they stay in the transcript.

    A tool call and its results are hidden together. Summaries that cover a hidden
    message are written again; `edited` decides about those that a user wrote. Raises
    EditedError when `edited` is ASK and there are such summaries.
    """
    seqs = tool_groups.complete_groups(conversation, seqs)
    rows = _lock_messages(conversation, seqs).filter(excluded_at=None)
    _change_messages(conversation, rows, edited, excluded_at=Now())


@transaction.atomic
def include_messages(
    conversation: Conversation,
    seqs: Iterable[int],
    *,
    edited: EditChoice = EditChoice.ASK,
) -> None:
    """Show hidden messages to the model again.

    Tool calls come back with their results, unless one of them was deleted. `edited` as
    for exclude_messages().
    """
    groups = tool_groups.find_groups(conversation, seqs := set(seqs))
    deleted = conversation.messages.exclude(deleted_at=None)
    for group in groups:
        if deleted.filter(seq__in=group).exists():
            seqs -= group
        else:
            seqs |= group
    rows = _lock_messages(conversation, seqs).exclude(excluded_at=None)
    _change_messages(conversation, rows, edited, excluded_at=None)


@transaction.atomic
def pin_message(conversation: Conversation, seq: int) -> None:
    """Keep a message word for word in the model's view after it was compacted."""
    _mark_pin(conversation, seq, pinned_at=Now())


@transaction.atomic
def unpin_message(conversation: Conversation, seq: int) -> None:
    _mark_pin(conversation, seq, pinned_at=None)


@transaction.atomic
def delete_message(
    conversation: Conversation, seq: int, *, edited: EditChoice = EditChoice.ASK
) -> None:
    """Remove the text of a message permanently, and what was made from it.

    That is: summaries that cover it, and a title made by the site. The rows stay,
    marked. When a tool call or a result is deleted, the other messages of its group are
    hidden. `edited` as for exclude_messages(): with KEEP, only the newest version of
    the user's words stays.

    Requests that were built from any of these can no longer be rebuilt.
    """
    rows = _lock_messages(conversation, [seq])
    others = tool_groups.complete_groups(conversation, [seq])
    beside = (
        _lock_messages(conversation, others).filter(excluded_at=None).exclude(seq=seq)
    )
    hidden = list(beside.values_list("seq", flat=True))
    erased = {**Message.ERASED, "deleted_at": Now()}
    _change_messages(conversation, rows, edited, beside=hidden, **erased)
    conversation.messages.filter(seq__in=hidden).update(excluded_at=Now())
    row = conversation.messages.get(seq=seq)
    recall.index_messages([row])
    signatures.renew_signature(row)
    versions.erase_versions(conversation, seq)
    prompts.release_deleted_words(conversation)
    transcript.forget_title(conversation, seq)
    # The text of the next request can quote the message.
    rows = Conversation.objects.filter(pk=conversation.pk).exclude(next_request={})
    for kept in rows.values_list("next_request", flat=True):
        rows.update(next_request=variation.forget_words(kept))
    # Tables of apps that are off may quote it too, and no app can clean them.
    left_rows.delete_left_rows(conversation)
    message_deleted.send(Message, conversation=conversation, seq=seq, edited=edited)


@transaction.atomic
def restore_version(
    conversation: Conversation,
    version: int,
    *,
    author: AbstractBaseUser,
    may_be_stale: bool = False,
    edited: EditChoice = EditChoice.ASK,
) -> Summary:
    """Put an older version in force again, as a new version.

    Summaries of later messages stay. Raises ActionError when there is no such version,
    when its messages have changed since (unless `may_be_stale`), or when no summary
    would cover the messages before it. Raises EditedError when a summary that a user
    wrote covers a part of its messages, unless `edited` is WRITE.
    """
    transcript.lock_for_update(conversation)
    summary = _find_version(conversation, version)
    is_stale = summary.status == Summary.Status.STALE
    if summary.status != Summary.Status.SUPERSEDED and not (may_be_stale and is_stale):
        templates = {
            Summary.Status.ACTIVE: _("Version %(version)s is already the current one."),
            Summary.Status.STALE: _(
                "Version %(version)s can't come back: its messages have changed."
            ),
            Summary.Status.ERASED: _(
                "Version %(version)s can't come back: it was erased when one of its "
                "messages was deleted."
            ),
        }
        failed = _("Version %(version)s can't come back: it failed.")
        template = templates.get(summary.status, failed)
        raise ActionError(template % {"version": version})
    ends = (summary.first_seq, summary.last_seq)
    by_hand = versions.by_hand(conversation, *ends)
    others = [row for row in by_hand if (row.first_seq, row.last_seq) != ends]
    if others and edited != EditChoice.WRITE:
        raise EditedError(others, restored=version)
    later = versions.retract_to(conversation, *ends)
    if (
        versions.last_covered(versions.active_summaries(conversation))
        != summary.first_seq - 1
    ):
        template = _("No summary covers the messages before #%(seq)s.")
        raise ActionError(template % {"seq": summary.first_seq})
    new = versions.copy_version(conversation, summary, author=author)
    versions.set_aside(conversation, later)
    versions.resume_set_aside(conversation)
    lease.mark_due(conversation.pk)
    return new


@transaction.atomic
def reinstate_versions(
    conversation: Conversation,
    wanted: Iterable[int],
    *,
    author: AbstractBaseUser,
    made: Iterable[int] | None = None,
) -> None:
    """Put these versions in force again to undo an action.

    Versions that are no longer in force come back as new versions. They replace the
    versions that were `made` by the undone action (None: all). Words that a user has
    written since stay.

    Raises ActionError when there is no such version, when their messages have changed
    since, or when a user has written a summary of the same messages since.
    """
    transcript.lock_for_update(conversation)
    wanted = sorted(set(wanted))
    summaries = [_find_version(conversation, version) for version in wanted]
    summaries.sort(key=lambda summary: summary.first_seq)
    usable = (Summary.Status.ACTIVE, Summary.Status.SUPERSEDED)
    end = 0
    for summary in summaries:
        if summary.status not in usable or summary.first_seq != end + 1:
            text = _("That view can't come back: its summaries have changed.")
            raise ActionError(text)
        end = summary.last_seq
    since = [] if made is None else versions.list_known(conversation)
    since = [row for row in since if row.version not in {*wanted, *(made or ())}]
    if any(row.is_by_hand and row.first_seq <= end for row in since):
        text = _("That view can't come back: a summary was edited since.")
        raise ActionError(text)
    later = [row for row in since if row.first_seq > end]
    versions.replace_all(conversation, summaries, author=author, later=later)


@transaction.atomic
def put_back_versions(
    conversation: Conversation,
    wanted: Iterable[int],
    seen: str,
    made: Iterable[int] | None = None,
) -> bool:
    """Put exactly these versions in force again to undo an action.

    They replace the versions that were `made` by the undone action (None: all). Return
    False and change nothing if that is impossible: the model must see the same of their
    messages as when versions.digest_view() returned `seen`, and no user may have
    written a summary of them since.
    """
    transcript.lock_for_update(conversation)
    wanted = list(wanted)
    rows = conversation.summaries.filter(version__in=wanted)
    used = (Summary.Status.ACTIVE, Summary.Status.SUPERSEDED, Summary.Status.STALE)
    summaries = list(rows.filter(status__in=used).order_by("first_seq"))
    ends = [0, *(row.last_seq for row in summaries)]
    follow = all(
        row.first_seq == end + 1 for row, end in zip(summaries, ends, strict=False)
    )
    known = {row.version for row in versions.by_hand(conversation, 1, ends[-1])}
    if (
        not summaries
        or not follow
        or (made is not None and not known <= {*wanted, *made})
        or versions.digest_view(conversation, ends[-1]) != seen
    ):
        return False
    versions.put_in_force(conversation, summaries)
    return True


def rewrite_summary(
    conversation: Conversation, version: int, text: str, *, author: AbstractBaseUser
) -> Summary:
    """Replace the text of an active summary by a user's, as a new version.

    Raises ReplacedError when another version has replaced it in the meantime.
    """
    transcript.check_message_text(text)
    # Reading all messages takes a while, so it is done before anything is locked.
    flags = versions.check_edit(_find_version(conversation, version), text)
    with transaction.atomic():
        transcript.lock_for_update(conversation)
        summary = _find_version(conversation, version)
        if summary.status != Summary.Status.ACTIVE:
            _raise_replaced(conversation, summary)
        new = versions.copy_version(
            conversation, summary, author=author, text=text, kind="edit", flags=flags
        )
        versions.bump_memory_version(conversation)
    return new


def _raise_replaced(conversation: Conversation, summary: Summary) -> NoReturn:
    for row in versions.active_summaries(conversation):
        if (row.first_seq, row.last_seq) == (summary.first_seq, summary.last_seq):
            text = _(
                "v%(new)s has replaced v%(old)s in the meantime. Your text is still "
                "here: save it again to replace v%(new)s."
            )
            values = {"old": summary.version, "new": row.version}
            raise ReplacedError(text % values, row.version)
    text = _(
        "v%(old)s is no longer current, and no other version covers exactly the same "
        "messages. Copy your text before you close this."
    )
    raise ActionError(text % {"old": summary.version})


@transaction.atomic
def rebuild_memory(
    conversation: Conversation, *, edited: EditChoice = EditChoice.WRITE
) -> None:
    """Put all summaries out of force, so that the compaction job makes new ones.

    With KEEP, summaries that a user wrote stay in force.
    """
    transcript.lock_for_update(conversation)
    by_hand = versions.by_hand(conversation, 1, LAST_SEQ)
    versions.retract_to(conversation, 1)
    if edited == EditChoice.KEEP:
        versions.set_aside(conversation, by_hand)
        versions.resume_set_aside(conversation)
    lease.reset_back_off(conversation)


@transaction.atomic
def set_policy(
    conversation: Conversation, value: dict[str, object], *, seen: object = None
) -> None:
    """Summarise the conversation by another policy from now on; no summary is lost.

    Raises PolicyError when the policy is wrong, ActionError when the stored one differs
    from `seen`.
    """
    Policy.load(value)
    _set_column(conversation, "policy", value, seen=seen)
    lease.reset_back_off(conversation)


@transaction.atomic
def set_system_prompt(
    conversation: Conversation, text: object, *, seen: str | None = None
) -> None:
    """Begin every request from now on with this text; "" is the site's prompt.

    Earlier requests can still be shown and proved: they refer to their prompt by its
    hash. Raises TextError when the text can't be stored, ActionError when the stored
    one differs from `seen`.
    """
    text = transcript.check_system_prompt(text)
    _set_column(conversation, "system_prompt", text, seen=seen)


@transaction.atomic
def set_model(conversation: Conversation, name: str) -> None:
    """Let this model write the replies from now on; "" is the site's."""
    _set_column(conversation, "model", name)


def set_temperature(conversation: Conversation, value: float | None) -> None:
    """Ask for replies of this temperature, 0 to 2, from now on; None is the site's."""
    conversation.temperature = value
    conversation.save(update_fields=["temperature"])


def _set_column(
    conversation: Conversation, column: str, value: object, *, seen: object = None
) -> None:
    """Write a column that the model's view depends on.

    Raises ActionError if the stored value differs from `seen`.
    """
    transcript.lock_for_update(conversation)
    conversation.refresh_from_db(fields=[column])
    if seen is not None and getattr(conversation, column) not in (seen, value):
        raise ActionError(_("This has been changed elsewhere in the meantime."))
    setattr(conversation, column, value)
    conversation.save(update_fields=[column])
    versions.bump_memory_version(conversation)


def _lock_messages(
    conversation: Conversation, seqs: Iterable[int]
) -> models.QuerySet[Message]:
    transcript.lock_for_update(conversation)
    return conversation.messages.filter(seq__in=list(seqs), deleted_at=None)


def _change_messages(
    conversation: Conversation,
    rows: models.QuerySet[Message],
    edited: EditChoice,
    *,
    beside: Iterable[int] = (),
    **values: object,
) -> None:
    """Update the rows and put the summaries that cover them out of force.

    The same goes for summaries that cover a message of `beside`.
    """
    seqs = sorted(rows.values_list("seq", flat=True))
    if not seqs:
        raise ActionError(
            _("There is no such message, or it is already as you want it.")
        )
    ends = min([*seqs, *beside]), max([*seqs, *beside])
    by_hand = (
        versions.by_hand(conversation, *ends) if edited != EditChoice.WRITE else []
    )
    if by_hand and edited == EditChoice.ASK:
        raise EditedError(by_hand, deletes="deleted_at" in values)
    conversation.messages.filter(seq__in=seqs).update(**values)
    versions.invalidate_summaries(conversation, *ends, keep=by_hand)
    lease.mark_due(conversation.pk)


def _mark_pin(conversation: Conversation, seq: int, **values: object) -> None:
    if not _lock_messages(conversation, [seq]).update(**values):
        raise ActionError(_("There is no message #%(seq)s.") % {"seq": seq})


def _find_version(conversation: Conversation, version: int) -> Summary:
    summary = conversation.summaries.filter(version=version).first()
    if summary is None:
        raise ActionError(_("There is no version %(version)s.") % {"version": version})
    return summary
