"""Actions of staff on one conversation.

Each takes the request of a reviewer, is written into the access log and the admin's own
log, and reaches open pages. Each returns a sentence, or raises ActionError with the
reason; a conversation that is gone raises Conversation.DoesNotExist.
"""

from dataclasses import asdict, astuple, dataclass
from typing import Self

from asgiref.sync import async_to_sync
from django.contrib import admin
from django.contrib.admin.models import DELETION, LogEntry
from django.db import models, transaction
from django.db.models import Max
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from chatsite.protocol import events
from chatsite.protocol.errors import CommandError
from chatsite.turns import limits, runner
from memory import actions, versions
from memory.actions import ActionError
from memory.models import Conversation

from ..access_log import StaffAction, record_access
from ..models import Review
from . import erasing


class RebuildCause(models.TextChoices):
    """The reason to write summaries again: a word for the access log, never a text."""

    LOST = "lost", gettext_lazy("something was lost")
    INVENTED = "invented", gettext_lazy("something was invented")
    CHANGED = "changed", gettext_lazy("a text was changed by hand")
    OUTDATED = "outdated", gettext_lazy("made by an old model or prompt")
    ASKED = "asked", gettext_lazy("its owner asked for it")


@dataclass(frozen=True, slots=True)
class State:
    """The state of a conversation: what a reviewer can have seen of it.

    A review has it in columns of the same names.
    """

    memory_version: int
    version: int
    last_seq: int

    @classmethod
    def of_conversation(cls, conversation: Conversation) -> Self:
        version = conversation.summaries.aggregate(newest=Max("version"))["newest"]
        last = conversation.messages.aggregate(newest=Max("seq"))["newest"]
        return cls(conversation.memory_version, version or 0, last or 0)

    @classmethod
    def parse_text(cls, text: str) -> Self:
        """Return the state that str() wrote; raise ActionError."""
        parts = text.split(".")
        if len(parts) != 3 or not all(p.isdecimal() and len(p) < 10 for p in parts):
            raise ActionError(_("The form was not complete. Open the page again."))
        return cls(*map(int, parts))

    def __str__(self) -> str:
        return ".".join(map(str, astuple(self)))

    def has_seen(self, other: "State") -> bool:
        return all(a >= b for a, b in zip(astuple(self), astuple(other), strict=True))


def rebuild_as_staff(
    request: HttpRequest,
    conversation: Conversation,
    *,
    cause: str,
    seen: State | None = None,
) -> str:
    """Void all summaries; they are written again from the transcript.

    `seen` is what the reviewer looked at; an ActionError is raised if it is another by
    now, or if there is nothing to rebuild.
    """
    with transaction.atomic():
        row = _lock_seen(conversation, seen)
        # What users wrote stays, unless that is what is wrong.
        is_wrong = cause == RebuildCause.CHANGED
        current = versions.active_summaries(row)
        if current and not is_wrong and all(each.is_by_hand for each in current):
            raise ActionError(
                _("People have edited all current summaries. To discard them, choose "
                  "the reason “a text was changed by hand”.")
            )  # fmt: skip
        if not current:
            raise ActionError(
                _("There is nothing to summarise again: there is no current summary, "
                  "or new ones are already being written.")
            )  # fmt: skip
        try:
            limits.admit_spending(row.owner_id)
        except CommandError as error:
            raise ActionError(
                _("The summaries would be written at the expense of the conversation's "
                  "owner, whose limit says: %(detail)s") % {"detail": error.detail}
            ) from None  # fmt: skip
        edited = actions.EditChoice.WRITE if is_wrong else actions.EditChoice.KEEP
        actions.rebuild_memory(row, edited=edited)
        record_access(request, StaffAction.REBUILD, conversation, f"cause {cause}")
        _log_action(request, conversation, f"Rebuilt the summaries: {cause}.")
    _refresh_open_pages(conversation)
    return _("The summaries were cleared. New ones are written when needed.")


def restore_as_staff(
    request: HttpRequest,
    conversation: Conversation,
    *,
    version: int,
    seen: State | None = None,
    edited: actions.EditChoice = actions.EditChoice.ASK,
) -> str:
    """Put an older version in force again, as a new one by the reviewer.

    Raises EditedError when `edited` says that the reviewer is asked about others.
    """
    with transaction.atomic():
        row = _lock_seen(conversation, seen)
        new = actions.restore_version(row, version, author=request.user, edited=edited)
        target = f"version {version} as {new.version}"
        record_access(request, StaffAction.RESTORE, conversation, target)
        _log_action(request, conversation, f"Restored v{version} as v{new.version}.")
    _refresh_open_pages(conversation)
    text = _("Version %(old)s was restored as v%(new)s.")
    return text % {"old": version, "new": new.version}


def _lock_seen(conversation: Conversation, seen: State | None) -> Conversation:
    """Return the row as it is now, locked until the transaction ends."""
    row = Conversation.objects.select_for_update().get(pk=conversation.pk)
    if row.deleted_at:
        raise ActionError(_("Its owner has deleted it: there is no view to change."))
    if seen is not None and row.memory_version != seen.memory_version:
        raise ActionError(
            _("What the model sees has changed since this page was loaded: "
              "by its owner, by a new summary or by another reviewer. Look "
              "again, then decide.")
        )  # fmt: skip
    return row


def _refresh_open_pages(conversation: Conversation) -> None:
    async_to_sync(events.publish_change)(conversation.pk)
    async_to_sync(runner.compact_soon)(conversation.pk)


def mark_reviewed(
    request: HttpRequest,
    conversation: Conversation,
    *,
    note: str,
    seen: State | None = None,
) -> str:
    """Mark what was `seen` as reviewed; without it, everything up to now.

    Raises ActionError if the same reviewer has already recorded the same.
    """
    with transaction.atomic():
        row = Conversation.objects.select_for_update().get(pk=conversation.pk)
        now = State.of_conversation(row)
        seen = seen or now
        if not now.has_seen(seen):
            raise ActionError(
                _("This form belongs to another conversation. Open the page again.")
            )
        latest = row.reviews.first()
        values = {"user_id": request.user.pk, "note": note, **asdict(seen)}
        if latest and all(getattr(latest, n) == value for n, value in values.items()):
            raise ActionError(_("You have marked it already, with the same note."))
        row.reviews.create(username=request.user.get_username(), **values)
        target = f"transcript #1-#{seen.last_seq}, v{seen.version}"
        record_access(request, StaffAction.REVIEW, conversation, target)
        _log_action(request, conversation, f"Marked reviewed: {target}.")
    return _("Marked reviewed up to message #%(seq)s.") % {"seq": seen.last_seq}


def is_outdated(row: Review, now: State) -> bool:
    """Return if the conversation continued, or its view changed, after the review."""
    return (row.memory_version, row.last_seq) != (now.memory_version, now.last_seq)


def purge_conversation(
    request: HttpRequest, conversation: Conversation, *, reason: str
) -> str:
    tombstone = erasing.erase_with_tombstone(
        conversation, user=request.user, reason=reason
    )
    record_access(
        request, StaffAction.PURGE, conversation, f"conversation {tombstone.sha256}"
    )
    LogEntry.objects.log_actions(
        request.user.pk, [conversation], DELETION, "Erased.", single_object=True
    )
    text = _("%(name)s was erased. A deletion record stays.")
    return text % {"name": conversation}


def _log_action(request: HttpRequest, conversation: Conversation, message: str) -> None:
    """Into Django's own log, which never holds a text or a title."""
    site = admin.site.get_model_admin(Conversation)
    site.log_change(request, conversation, message)
