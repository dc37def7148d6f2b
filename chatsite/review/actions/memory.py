"""Acts of a reviewer on the model's view: all anew from the transcript, or an older
version back in force. The owner can undo both, and sees them live.
"""

from typing import TYPE_CHECKING

from asgiref.sync import async_to_sync
from django.db import models, transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from chatsite.protocol import events
from chatsite.protocol.errors import CommandError
from chatsite.turns import limits, runner
from memory import actions, versions
from memory.actions import ActionError
from memory.models import Conversation, Summary

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser


class Cause(models.TextChoices):
    """Why summaries are made anew: a word for the access log, never a text."""

    LOST = "lost", gettext_lazy("something was lost")
    INVENTED = "invented", gettext_lazy("something was invented")
    CHANGED = "changed", gettext_lazy("a text was changed by hand")
    OUTDATED = "outdated", gettext_lazy("made by an old model or prompt")
    ASKED = "asked", gettext_lazy("its owner asked for it")


@transaction.atomic
def rebuild(conversation: Conversation, *, seen: int | None = None) -> None:
    """Void all summaries; the compaction job makes them anew from the transcript.

    `seen` is the state of the view that the reviewer looked at. Raises ActionError when
    it is another by now, or when there is nothing to rebuild.
    """
    row = _locked(conversation, seen)
    if not versions.active(row):
        raise ActionError(
            _("There is nothing to rebuild: no summary is in force, or they are being "
              "made anew already.")
        )  # fmt: skip
    try:
        limits.admit_spending(row.owner_id)
    except CommandError as error:
        raise ActionError(
            _("The summaries would be written at the expense of the conversation's "
              "owner, whose limit says: %(detail)s") % {"detail": error.detail}
        ) from None  # fmt: skip
    actions.rebuild(row)


@transaction.atomic
def restore(
    conversation: Conversation,
    version: int,
    *,
    author: "AbstractBaseUser",
    seen: int | None = None,
) -> Summary:
    """Put an older version in force again, as a new one by the reviewer."""
    return actions.restore(_locked(conversation, seen), version, author=author)


def _locked(conversation: Conversation, seen: int | None) -> Conversation:
    """The row as it is now, kept from others until the transaction ends."""
    row = Conversation.objects.select_for_update().get(pk=conversation.pk)
    if row.deleted_at:
        raise ActionError(_("Its owner has deleted it: there is no view to change."))
    if seen is not None and row.memory_version != seen:
        raise ActionError(
            _("What the model sees has changed since this page was loaded: "
"by its owner, by a new summary or by another reviewer. Look "
"again, then decide.")
        )  # fmt: skip
    return row


def tell_owner(conversation: Conversation) -> None:
    """Let the open pages of the conversation draw the new view."""
    async_to_sync(events.publish)(conversation.pk, events.Memory(None, "changed"))
    async_to_sync(runner.compact_soon)(conversation.pk)
