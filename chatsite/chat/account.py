"""What happens to a whole account: everything of it as data, its end, its sessions."""

import json
from collections.abc import AsyncIterator
from typing import Any

from asgiref.sync import async_to_sync
from axes.models import AccessAttempt
from channels.db import database_sync_to_async
from django.contrib.auth.models import AbstractBaseUser
from django.core.serializers.json import DjangoJSONEncoder

from memory import library
from memory.models import Conversation

from . import events, export, preferences, turns


async def export_all(user: AbstractBaseUser) -> AsyncIterator[str]:
    """The account as one JSON document, conversation by conversation."""
    head, ids = await database_sync_to_async(_beginning)(user)
    yield head[:-1] + ', "conversations": ['
    for number, pk in enumerate(ids):
        text = await database_sync_to_async(_conversation)(pk)
        yield f"{',' if number and text else ''}\n{text}"
    yield "\n]}\n"


def _beginning(user: AbstractBaseUser) -> tuple[str, list[int]]:
    preferred = preferences.of(user)
    value = {
        "format": export.FORMAT,
        "account": {
            "username": user.get_username(),
            "email": getattr(user, "email", ""),
            "date_joined": getattr(user, "date_joined", None),
            "last_login": user.last_login,
            "preferences": {"model": preferred.model, "preset": preferred.preset},
        },
    }
    ids = library.own(user).order_by("pk").values_list("pk", flat=True)
    return _dump(value), list(ids)


def _conversation(pk: int) -> str:
    """Empty when it was deleted while the others were written."""
    row = Conversation.objects.filter(pk=pk, deleted_at=None).first()
    return _dump(export.whole(row)) if row else ""


def _dump(value: dict[str, Any]) -> str:
    return json.dumps(value, cls=DjangoJSONEncoder, ensure_ascii=False)


def delete(user: AbstractBaseUser) -> None:
    """Everything of the person goes: replies stop, sockets close, rows are erased."""
    rows = list(Conversation.objects.filter(owner=user))
    for conversation in rows:
        library.delete(conversation)
    for conversation in rows:
        async_to_sync(end_all)(conversation.pk, turns.stop_all(conversation))
    for conversation in rows:
        library.erase(conversation)
    AccessAttempt.objects.filter(username=user.get_username()).delete()
    user.delete()


async def end_all(conversation_id: int, running: list[int]) -> None:
    """Close the sockets of a conversation and wake the runners of its turns."""
    await events.tell_gone(conversation_id)
    for turn_id in running:
        await events.hint_stop(turn_id)
