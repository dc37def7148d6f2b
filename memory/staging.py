"""Conversations that are being written, batch by batch.

No page, search or compaction sees them before they are whole; until then they have the
token of the import.
"""

from datetime import UTC, datetime

from django.db.models import QuerySet
from django.db.models.functions import Now

from .models import Conversation

# The token of a conversation whose messages are being erased.
ERASED = "erased"
# A deletion time that hides the row everywhere and is too old to be undone.
HIDDEN = datetime(1970, 1, 1, tzinfo=UTC)


def hide_staged(conversation: Conversation, token: str) -> None:
    """Hide a conversation until it is whole.

    For a new conversation, call it in the transaction that makes it.
    """
    rows = Conversation.objects.filter(pk=conversation.pk)
    rows.update(staged_by=token, deleted_at=HIDDEN)


def find_staged(token: str) -> QuerySet[Conversation]:
    return Conversation.objects.filter(staged_by=token, deleted_at__isnull=False)


def reveal_staged(token: str) -> None:
    """Show all of them at once, and mark them due for compaction."""
    find_staged(token).update(staged_by=None, deleted_at=None, compaction_due_at=Now())


def abandon_staged(token: str) -> None:
    """Leave them to the purge."""
    find_staged(token).update(staged_by=None)
