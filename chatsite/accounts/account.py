"""Deletion of an account, and the end of its sessions."""

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from asgiref.sync import async_to_sync
from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.contrib.admin.models import LogEntry
from django.contrib.auth import SESSION_KEY, get_user_model, user_logged_out
from django.contrib.auth.models import AbstractBaseUser
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session
from django.db import IntegrityError, OperationalError, transaction
from django.db.models import Model
from django.db.models.functions import Now
from django.dispatch import receiver

from chatsite.protocol import events
from chatsite.turns import commands
from chatsite.turns.models import Job
from memory import library
from memory.database import name_of
from memory.integrity import left_rows
from memory.models import Conversation

logger = logging.getLogger(__name__)

ATTEMPTS = 5


class BusyError(Exception):
    """Running work kept some rows of the user from being removed."""


def delete_account(
    user: AbstractBaseUser, record: Callable[[], object] = lambda: None
) -> None:
    """Delete a user with everything of theirs: stop replies, close sockets, erase rows.

    The account itself goes last, so that the user can repeat what failed in between; in
    the same transaction, record() can store that it was deleted. Raises BusyError.
    """
    sessions = _sessions_of(user)
    for _attempt in range(ATTEMPTS):
        try:
            _stop_everything(user)
            for conversation in Conversation.objects.filter(owner=user):
                _erase_conversation(conversation)
            _remove_account(user, sessions, record)
        except (IntegrityError, OperationalError) as error:
            logger.info("not deleted yet account=%s: %s", user.pk, name_of(error))
        else:
            transaction.on_commit(library.empty_journal, robust=True)
            return
    raise BusyError


def forget_left_rows(instance: Model, **kwargs: Any) -> None:
    """Delete what refers to a user or group before it is deleted itself."""
    left_rows.delete_left_rows(instance)


def _stop_everything(user: AbstractBaseUser) -> None:
    """Stop everything that runs for the user and could write a row."""
    Job.objects.filter(user=user).delete()
    rows = Conversation.objects.filter(owner=user)
    rows.update(deleted_at=Now())
    for conversation in rows:
        with suppress(Conversation.DoesNotExist):
            end_running(conversation)


@receiver(user_logged_out)
def end_temporary(user: AbstractBaseUser | None, **sent: Any) -> None:
    """Delete the temporary conversations of a user who logs out, and their jobs."""
    if user is None:
        return
    for conversation in library.find_temporary(user):
        with suppress(Conversation.DoesNotExist):  # the purge was faster
            library.delete_conversation(conversation)
            end_running(conversation)
    library.purge_deleted()


def _erase_conversation(conversation: Conversation) -> None:
    with suppress(Conversation.DoesNotExist):  # the purge was faster
        library.erase_conversation(conversation)


@transaction.atomic
def _remove_account(
    user: AbstractBaseUser, sessions: list[str], record: Callable[[], object]
) -> None:
    # Work that is about to write a row of the user waits here, and then cannot.
    accounts = get_user_model().objects.filter(pk=user.pk)
    accounts.select_for_update().first()
    for conversation in Conversation.objects.filter(owner=user):
        _erase_conversation(conversation)
    Session.objects.filter(pk__in=sessions).delete()
    for model in (AccessAttempt, AccessFailureLog, AccessLog):
        model.objects.filter(username=user.get_username()).delete()
    kind = ContentType.objects.get_for_model(get_user_model())
    LogEntry.objects.filter(content_type=kind, object_id=str(user.pk)).delete()
    accounts.delete()
    record()


def _sessions_of(user: AbstractBaseUser) -> list[str]:
    """Return the keys of the user's sessions; all are read, no column has the user."""
    rows = Session.objects.values_list("session_key", "session_data")
    decode = Session.get_session_store_class()().decode
    return [
        key
        for key, data in rows.iterator()
        if decode(data).get(SESSION_KEY) == str(user.pk)
    ]


def end_running(conversation: Conversation) -> None:
    """End what runs for a conversation, and close its sockets."""
    turns = commands.end_unfinished_turns(conversation)
    async_to_sync(end_all)(conversation.pk, turns)


async def end_all(conversation_id: int, running: list[int]) -> None:
    """Close the sockets of a conversation and wake the runners of its turns."""
    await events.tell_gone(conversation_id)
    for turn_id in running:
        await events.hint_stop(turn_id)
