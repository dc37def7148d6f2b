"""Reminders that came, until the person has looked at them: late results of a tool that
has `reminds_of`.
"""

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from chatsite.protocol import events
from chatsite.tools import registry
from chatsite.tools.events import Unread
from chatsite.tools.models import ToolCall
from memory.models import Conversation
from memory.sql import prepared_rows


@dataclass(frozen=True, slots=True)
class Reminder:
    """One that the person has not looked at; `seq` is its message."""

    conversation: str
    seq: int
    text: str


def text_of(call: ToolCall) -> str:
    """What the call is to remind of; "" where it is no reminder, or was deleted."""
    tool = registry.available().get(call.name)
    return str(call.arguments.get(tool.reminds_of, "")) if tool else ""


def find_unread(user_id: int) -> list[Reminder]:
    """Of all conversations of the person, the oldest first."""
    return [
        Reminder(str(call.conversation.uuid), call.late_result.seq, text_of(call))
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


def look_at(conversation: Conversation) -> tuple[events.Event, ...]:
    """The person looks at the conversation; what their pages are told."""
    unread = ToolCall.objects.filter(conversation=conversation, is_unread=True)
    if not unread.update(is_unread=False):
        return ()
    return (Unread(str(conversation.uuid), 0, None, ""),)


def events_of(user_id: int) -> dict[str, Unread]:
    """What the person is told, by the uuid of the conversation that has some."""
    told: dict[str, Unread] = {}
    for each in find_unread(user_id):
        count = told[each.conversation].count if each.conversation in told else 0
        values = (each.conversation, count + 1, each.seq, each.text)
        told[each.conversation] = Unread(*values)
    return told
