"""All data of a user as one JSON document."""

from collections.abc import AsyncIterator
from typing import Any

from channels.db import database_sync_to_async
from django.contrib.auth.models import AbstractBaseUser

from chatsite.accounts import preferences
from chatsite.plugins import app_data
from memory import library
from memory.models import Conversation

from .. import left_out as rows_left_out
from ..thread_format import FORMAT
from .thread import dump_export, export_thread, write_threads

# Preferences that are not what new conversations begin with.
DISPLAY = ("enter_breaks_line", "time_zone")


async def export_account(user: AbstractBaseUser) -> AsyncIterator[str]:
    """Yield the account as one JSON document, conversation by conversation."""
    head, ids = await database_sync_to_async(_describe_account)(user)
    async for part in write_threads(head, ids, database_sync_to_async(_dump_thread)):
        yield part


def _describe_account(user: AbstractBaseUser) -> tuple[dict[str, Any], list[int]]:
    preferred = preferences.find_preferences(user)
    value = {
        "format": FORMAT,
        "left_out": rows_left_out.count_left_of_account(user.pk),
        "account": {
            "username": user.get_username(),
            "email": getattr(user, "email", ""),
            "date_joined": getattr(user, "date_joined", None),
            "last_login": user.last_login,
            "preferences": {
                name: getattr(preferred, name)
                for name in (*preferences.FIELDS, *DISPLAY)
            },
            **{each.name: each.list_own(user) for each in app_data if each.list_own},
        },
    }
    ids = library.list_own(user).order_by("pk").values_list("pk", flat=True)
    return value, list(ids)


def _dump_thread(pk: int) -> str:
    """Empty when it was deleted while the others were written."""
    row = Conversation.objects.filter(pk=pk, deleted_at=None).first()
    return dump_export(export_thread(row)) if row else ""
