"""The list of a person's conversations: pinned, archived, deleted with a way back.

None of these acts touches what was said, or when the conversation was last used.
"""

from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from . import folding
from .models import Conversation, ModelCall, Prompt

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

# How long a deleted conversation can be brought back.
UNDO = timedelta(minutes=10)
PURGE_AT_ONCE = 20


def own(user: "AbstractBaseUser") -> QuerySet[Conversation]:
    """All of a person's conversations, those with the latest change first."""
    rows = Conversation.objects.filter(owner=user, deleted_at=None)
    return rows.order_by("-updated_at", "-id")


def shelf(
    user: "AbstractBaseUser", *, archived: bool = False
) -> QuerySet[Conversation]:
    """What the list shows: pinned ones first, then by the latest change."""
    rows = own(user).filter(archived_at__isnull=not archived)
    return rows.order_by(F("pinned_at").desc(nulls_last=True), "-updated_at", "-id")


def pin(conversation: Conversation) -> None:
    _mark(conversation, pinned_at=Now())


def unpin(conversation: Conversation) -> None:
    _mark(conversation, pinned_at=None)


def archive(conversation: Conversation) -> None:
    _mark(conversation, archived_at=Now())


def unarchive(conversation: Conversation) -> None:
    _mark(conversation, archived_at=None)


def _mark(conversation: Conversation, **values: object) -> None:
    Conversation.objects.filter(pk=conversation.pk).update(**values)
    conversation.refresh_from_db(fields=[*values])


def delete(conversation: Conversation) -> None:
    """Let it be missing from now on; `restore` can bring it back for a while."""
    _mark(conversation, deleted_at=Now())


def deleted_lately(user: "AbstractBaseUser") -> QuerySet[Conversation]:
    rows = Conversation.objects.filter(owner=user, deleted_at__gte=Now() - UNDO)
    return rows.order_by("-deleted_at")


def restore(user: "AbstractBaseUser", uuid: UUID | str) -> Conversation:
    """Undo a deletion. Raises Conversation.DoesNotExist once it is too late."""
    conversation = deleted_lately(user).get(uuid=uuid)
    _mark(conversation, deleted_at=None)
    folding.mark_due(conversation.pk)
    return conversation


def purge() -> int:
    """Take away for good what was deleted long enough ago; how many they were."""
    rows = Conversation.objects.filter(deleted_at__lt=Now() - UNDO)
    found = list(rows.order_by("deleted_at")[:PURGE_AT_ONCE])
    for conversation in found:
        erase(conversation)
    return len(found)


def erase(conversation: Conversation) -> None:
    """Take a conversation away with everything that was kept for it alone."""
    prompts = _prompts_of(conversation)
    conversation.delete()
    for sha256 in prompts:
        used = ModelCall.objects.filter(Q(refs__system=sha256) | Q(refs__fence=sha256))
        if not used.exists():
            QuerySet(Prompt).filter(pk=sha256).delete()


def _prompts_of(conversation: Conversation) -> set[str]:
    """Hashes of the texts that its requests were sent with."""
    calls = conversation.model_calls.filter(purpose=ModelCall.Purpose.REPLY)
    pairs = calls.order_by().values_list("refs__system", "refs__fence").distinct()
    return {sha256 for pair in pairs for sha256 in pair if sha256}
