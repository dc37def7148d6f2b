"""The right to erasure: a conversation goes, a tombstone with numbers and a hash stays.

docs/admin.md says what the database's own files, its journal and backups still hold;
`manage.py scrub` rewrites the files.
"""

import hashlib
import json
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import IntegrityError, OperationalError, models, transaction
from django.db.models.functions import Cast
from django.utils.translation import gettext as _

from chatsite.accounts import account
from chatsite.turns.models import Turn
from memory import library
from memory.actions import ActionError
from memory.models import Conversation, Message, ModelCall, Summary

from ..models import Tombstone

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

logger = logging.getLogger(__name__)

PARTS: dict[str, type[models.Model]] = {
    "messages": Message,
    "summaries": Summary,
    "model_calls": ModelCall,
    "turns": Turn,
}
ATTEMPTS = 3


def count_rows(rows: models.QuerySet[Conversation]) -> dict[str, int]:
    """Count the rows of each kind of these conversations, by the tombstone's names."""
    counts = {
        name: model.objects.filter(conversation__in=rows.order_by()).count()
        for name, model in PARTS.items()
    }
    return {"conversations": rows.count(), **counts}


def find_copies(conversation: Conversation) -> models.QuerySet[Conversation]:
    """Other conversations that hold messages of this one; they are not erased."""
    branched = models.Q(branched_from=conversation)
    imported = models.Q(imported_from=f"windowpane:{conversation.uuid}")
    return Conversation.objects.filter(branched | imported, deleted_at=None)


def fingerprint_conversation(conversation: Conversation) -> str:
    """SHA-256 over lines of JSON: the uuid, then each message, then each summary.

    A message is [seq, role, text, tool_calls], a summary [version, text]; in UTF-8,
    keys sorted, no spaces, non-ASCII characters as they are. So it can be computed from
    an export, too.
    """
    messages = conversation.messages.order_by("seq")
    summaries = conversation.summaries.order_by("version")
    return digest_rows(
        str(conversation.uuid),
        messages.values_list("seq", "role", "text", "tool_calls").iterator(),
        summaries.values_list("version", "text").iterator(),
    )


def digest_rows(
    uuid: str, messages: Iterable[Iterable[Any]], summaries: Iterable[Iterable[Any]]
) -> str:
    sha256 = hashlib.sha256()
    for row in ([uuid], *messages, *summaries):
        text = json.dumps(
            list(row), ensure_ascii=False, sort_keys=True, separators=(",", ":")
        )
        sha256.update(f"{text}\n".encode())
    return sha256.hexdigest()


def erase_with_tombstone(
    conversation: Conversation, *, user: "AbstractBaseUser", reason: str = ""
) -> Tombstone:
    """Stop everything that runs for the conversation, then delete it for good.

    Raises Conversation.DoesNotExist when it is gone already, ActionError when it is
    being written to all the time.
    """
    for _attempt in range(ATTEMPTS):
        try:
            # From here on the conversation cannot be opened, and no work begins for it.
            library.delete_conversation(conversation)
            account.end_running(conversation)
            tombstone = _replace_by_tombstone(conversation, user, reason)
            logger.info("erased conversation=%s", conversation.pk)
            return tombstone
        except (IntegrityError, OperationalError) as error:
            # A reply or a compaction that is just ending holds rows that would go.
            name = type(error).__name__
            logger.info("not erased yet conversation=%s: %s", conversation.pk, name)
    raise ActionError(
        _("It is being written to right now, so it couldn't be erased. Its owner can "
        "no longer open it. Try again.")
    )  # fmt: skip


@transaction.atomic
def _replace_by_tombstone(
    conversation: Conversation, user: "AbstractBaseUser", reason: str
) -> Tombstone:
    # A compaction or a reply that is about to write a row waits here, and then finds
    # none.
    row = Conversation.objects.select_for_update().get(pk=conversation.pk)
    tombstone = Tombstone.objects.create(
        conversation=row.uuid,
        sha256=fingerprint_conversation(row),
        begun_at=row.created_at,
        user=user,
        username=user.get_username(),
        reason=reason,
        **count_rows(Conversation.objects.filter(pk=row.pk)),
    )
    row.branches.update(branched_from=None, branched_seq=None)
    library.erase_conversation(row)
    transaction.on_commit(library.empty_journal)
    return tombstone


def forget_log(conversation: Conversation) -> None:
    """Delete the admin's own log, to which earlier versions wrote titles."""
    _select_log_entries(Conversation.objects.filter(pk=conversation.pk)).delete()
    parts = {
        relation.related_model: relation.field.name
        for relation in Conversation._meta.related_objects
        if relation.on_delete is models.CASCADE
    }
    kinds = ContentType.objects.get_for_models(*parts)
    entries = LogEntry.objects.filter(content_type__in=kinds.values())
    logged = set(entries.values_list("content_type", flat=True).distinct())
    for model, name in parts.items():
        if kinds[model].pk in logged:
            _select_log_entries(
                model._base_manager.filter(**{name: conversation})
            ).delete()


def _select_log_entries(rows: models.QuerySet) -> models.QuerySet[LogEntry]:
    ids = rows.order_by().annotate(text_id=Cast("pk", models.TextField()))
    kind = ContentType.objects.get_for_model(rows.model)
    return LogEntry.objects.filter(
        content_type=kind, object_id__in=ids.values("text_id")
    )
