"""The list of a user's conversations: pinned, archived, deleted, restored.

Actions apply to one conversation or to several at once. None of them changes a message,
or when the conversation was last used.
"""

import logging
import time
from collections.abc import Collection, Iterable
from datetime import timedelta
from itertools import chain
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Length, Now

from . import bundle, prompts, staging, transcript
from .compaction import lease
from .integrity import left_rows
from .models import Conversation, Message

logger = logging.getLogger(__name__)

# How long a deleted conversation can be brought back.
UNDO = timedelta(minutes=10)
# The greatest age of a temporary conversation, even while a page of it is open.
TEMPORARY_AGE = timedelta(hours=24)
# The most conversations that one action changes.
MOST_AT_ONCE = 100
PURGE_AT_ONCE = 20
JOURNAL_WAIT_MS = 500
# After a batch, the lock is free for as long as the batch held it, up to this limit.
MAX_PAUSE = 0.1


def list_own(user: AbstractBaseUser) -> QuerySet[Conversation]:
    """Return the conversations that a user keeps, the latest change first."""
    rows = Conversation.objects.filter(
        owner=user, deleted_at=None, temporary_until=None
    )
    return rows.order_by("-updated_at", "-id")


def list_conversations(
    user: AbstractBaseUser, *, archived: bool = False
) -> QuerySet[Conversation]:
    """Return the conversations of the list: pinned first, then by latest change."""
    rows = list_own(user).filter(archived_at__isnull=not archived)
    return rows.order_by(F("pinned_at").desc(nulls_last=True), "-updated_at", "-id")


def pick_conversations(
    user: AbstractBaseUser, uuids: Collection[UUID]
) -> list[Conversation]:
    """Return these of the user's conversations, for an action on several.

    Raises Conversation.DoesNotExist when one is missing, deleted or another user's.
    """
    rows = list(
        list_own(user).filter(uuid__in=uuids).only("uuid", "archived_at", "tree")
    )
    if len(rows) < len(set(uuids)):
        raise Conversation.DoesNotExist
    return rows


def pin_all(conversations: Iterable[Conversation]) -> None:
    _select_conversations(conversations).update(pinned_at=Now())


def unpin_all(conversations: Iterable[Conversation]) -> None:
    _select_conversations(conversations).update(pinned_at=None)


def archive_all(conversations: Iterable[Conversation]) -> None:
    _select_conversations(conversations).update(archived_at=Now())


def unarchive_all(conversations: Iterable[Conversation]) -> None:
    _select_conversations(conversations).update(archived_at=None)


def delete_all(conversations: Iterable[Conversation]) -> None:
    """Delete several conversations as delete_conversation() deletes one.

    They have one time of deletion, by which the list offers to undo all of it.
    """
    _select_conversations(conversations).update(deleted_at=Now())


def _select_conversations(
    conversations: Iterable[Conversation],
) -> QuerySet[Conversation]:
    return Conversation.objects.filter(pk__in=[each.pk for each in conversations])


def delete_conversation(conversation: Conversation) -> None:
    """Hide a conversation everywhere.

    restore_all() can bring it back for a while, unless it is temporary: the next purge
    removes a temporary one.
    """
    times = {"temporary_until": Now()} if conversation.is_temporary else {}
    _select_conversations([conversation]).update(deleted_at=Now(), **times)
    conversation.refresh_from_db(fields=["deleted_at", *times])


def deleted_lately(user: AbstractBaseUser) -> QuerySet[Conversation]:
    rows = Conversation.objects.filter(
        owner=user, deleted_at__range=(Now() - UNDO, Now()), temporary_until=None
    )
    return rows.order_by("-deleted_at")


def restore_all(user: AbstractBaseUser, uuids: Collection[UUID]) -> list[Conversation]:
    """Undo the deletion of several, if it is not too late; return those restored.

    Raises Conversation.DoesNotExist when it is too late for all of them.
    """
    found = list(deleted_lately(user).filter(uuid__in=uuids).only("tree"))
    if not found:
        raise Conversation.DoesNotExist
    restore_rows(found)
    return found


def restore_rows(conversations: Iterable[Conversation]) -> None:
    """Undo the deletion of these, whichever user has deleted them."""
    lease.mark_all_due(_select_conversations(conversations), deleted_at=None)


def end_undo(user: AbstractBaseUser, uuids: Collection[UUID]) -> None:
    """End the time in which the deletion of these can be undone."""
    found = deleted_lately(user).filter(uuid__in=uuids)
    found.order_by().update(deleted_at=Now() - UNDO - timedelta(seconds=1))


def purge_deleted() -> int:
    """Remove conversations whose undo or temporary time is over; return how many.

    Removal is permanent. One that can't be removed now does not stop the others, and is
    tried again.
    """
    count = 0
    due = (
        find_erasable().order_by("deleted_at"),
        find_expired().order_by("temporary_until"),
    )
    for conversation in chain.from_iterable(rows[:PURGE_AT_ONCE] for rows in due):
        try:
            erase_conversation(conversation)
            count += 1
        except Conversation.DoesNotExist:
            continue  # another process was faster
        except (IntegrityError, OperationalError) as error:
            name = type(error).__name__
            logger.warning("not purged conversation=%s: %s", conversation.pk, name)
    if count:
        transaction.on_commit(empty_journal, robust=True)
    return count


def find_erasable() -> QuerySet[Conversation]:
    """Return the conversations whose time to undo a deletion is over."""
    whole = Q(staged_by=None) | Q(staged_by=staging.ERASED)
    return Conversation.objects.filter(whole, deleted_at__lt=Now() - UNDO)


def find_temporary(user: AbstractBaseUser) -> QuerySet[Conversation]:
    """Return the user's temporary conversations."""
    return Conversation.objects.filter(owner=user, temporary_until__isnull=False)


def keep_open(ids: Collection[int]) -> None:
    """Extend the time of these temporary conversations, whose pages are open."""
    rows = Conversation.objects.filter(
        pk__in=ids, temporary_until__isnull=False, deleted_at=None
    )
    rows.update(temporary_until=Now() + transcript.TEMPORARY)


def find_expired() -> QuerySet[Conversation]:
    """Return expired temporary conversations.

    Their last page was closed long enough ago, or they are too old.
    """
    is_over = Q(temporary_until__lte=Now()) | Q(created_at__lt=Now() - TEMPORARY_AGE)
    return Conversation.objects.filter(is_over, temporary_until__isnull=False)


def erase_conversation(conversation: Conversation) -> None:
    """Remove a conversation with everything that was kept for it alone.

    Raises Conversation.DoesNotExist when it is gone already.
    """
    left_rows.delete_left_rows(conversation)
    if not connection.in_atomic_block:
        _delete_messages(conversation)
    with transaction.atomic():
        # A transaction that writes a row for it waits for this lock, and then finds
        # none.
        row = Conversation.objects.select_for_update().get(pk=conversation.pk)
        texts = prompts.list_hashes(row)
        row.delete()
        prompts.drop_unused(texts)


def empty_journal() -> None:
    """Move SQLite's write-ahead log into the database and truncate it.

    If another connection is reading, the next erasure or `manage.py scrub` does it.
    """
    if connection.vendor != "sqlite":
        return
    with connection.cursor() as cursor:
        [wait] = cursor.execute("PRAGMA busy_timeout").fetchone()
        cursor.execute(f"PRAGMA busy_timeout = {JOURNAL_WAIT_MS}")
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        cursor.execute(f"PRAGMA busy_timeout = {wait}")


def _delete_messages(conversation: Conversation) -> None:
    """Delete the messages of a long conversation in short transactions.

    A single transaction would keep all other writers of SQLite waiting for seconds.
    From the first batch on the conversation is hidden; after an error the purge deletes
    the rest.
    """
    rows = conversation.messages.order_by("pk").values_list("pk", Length("text"))
    batches = list(bundle.batches(rows, lambda row: row[1]))
    if len(batches) < 2:
        return
    staging.hide_staged(conversation, staging.ERASED)
    for batch in batches:
        begun = time.monotonic()
        with transaction.atomic():
            QuerySet(Message).filter(pk__in=[pk for pk, _ in batch]).delete()
        time.sleep(min(MAX_PAUSE, time.monotonic() - begun))
