"""Unread reminders: late results of a tool that has `reminds_of`."""

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from chatsite.features.tools import registry
from chatsite.features.tools.models import ToolCall
from memory.models import Conversation
from memory.sql import prepared_rows

KIND = "reminder"


@dataclass(frozen=True, slots=True)
class News:
    """An unread message `seq` of a conversation, given by its uuid.

    `text`: the user's words that it is about, or "".
    """

    conversation: str
    seq: int
    text: str
    kind: str


def text_of(call: ToolCall) -> str:
    """Return the text of a reminder, "" if it is no reminder or was deleted."""
    tool = registry.known().get(call.name)
    return str(call.arguments.get(tool.reminds_of, "")) if tool else ""


def find_unread(user_id: int) -> list[News]:
    """Return the user's unread reminders in all conversations, the oldest first."""
    return [
        News(str(call.conversation.uuid), call.late_result.seq, text_of(call), KIND)
        for call in _unread(user=user_id)
    ]


@prepared_rows()
def _unread(user: Any) -> QuerySet[ToolCall]:
    rows = ToolCall.objects.filter(
        is_unread=True,
        conversation__owner=user,
        conversation__deleted_at=None,
        late_result__deleted_at=None,
    )
    rows = rows.select_related("conversation", "late_result").order_by("late_result")
    return rows.only("name", "arguments", "conversation__uuid", "late_result__seq")


def look_at(conversation: Conversation) -> bool:
    """Mark the reminders of the conversation as read; return whether there were any."""
    unread = ToolCall.objects.filter(conversation=conversation, is_unread=True)
    return bool(unread.update(is_unread=False))


def describe(text: str) -> str:
    return _("Reminder: %(text)s") % {"text": text}
