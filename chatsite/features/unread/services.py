"""Unread news of a user: found, stored, and marked as read."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.db import IntegrityError
from django.db.models import QuerySet
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from chatsite.features.tools.tool_loop import reminders
from chatsite.features.tools.tool_loop.reminders import News
from chatsite.turns.models import Turn
from memory.models import Conversation
from memory.sql import insert_row, prepared_rows

from .models import UnreadTurn

State = Turn.State
# The kind of news by the state of a turn. Users know what they have stopped.
KINDS: Mapping[str, str] = {
    State.DONE: "reply",
    State.WAITING: "question",
    State.FAILED: "failure",
    State.TRUNCATED: "failure",
    State.INTERRUPTED: "failure",
}


# By the kind of news: its line with a title, and the mark in the list.
WORDS = {
    "reply": (_("New reply: %(title)s"), _("new reply")),
    "question": (_("Waiting for you: %(title)s"), _("waiting for you")),
    "failure": (_("Reply failed: %(title)s"), _("reply failed")),
    reminders.KIND: ("", _("unread reminder")),
}


def describe_news(news: News) -> str:
    """Return the news in one line, without any text of the conversation."""
    if news.kind == reminders.KIND:
        return reminders.describe(news.text)
    if not news.text:
        return capfirst(name_news(news.kind))
    return WORDS[news.kind][0] % {"title": news.text}


def name_news(kind: str) -> str:
    """Return the mark of a conversation with such news in the list."""
    return str(WORDS[kind][1])


def find_news(user_id: int) -> list[News]:
    """Return the news of all conversations of the user.

    Turns come first, then reminders, the oldest first.
    """
    rows = _unread_turns(user=user_id)
    turns = [_make_news(each.conversation, each.turn, each.turn.state) for each in rows]
    return [*turns, *reminders.find_unread(user_id)]


@prepared_rows()
def _unread_turns(user: Any) -> QuerySet[UnreadTurn]:
    rows = UnreadTurn.objects.filter(
        conversation__owner=user,
        conversation__deleted_at=None,
        turn__state__in=[*KINDS],
    )
    rows = rows.select_related("conversation", "turn__reply", "turn__user_message")
    return rows.order_by("turn").only(
        *("conversation__uuid", "conversation__title", "turn__state"),
        *("conversation__temporary_until", "turn__reply__seq"),
        "turn__user_message__seq",
    )


def _make_news(conversation: Conversation, turn: Turn, state: str) -> News:
    message = turn.reply or turn.user_message
    # Temporary conversations have no title in lists and notifications.
    title = "" if conversation.is_temporary else conversation.title
    return News(str(conversation.uuid), message.seq, title, KINDS[state])


def note_turn(turn: Turn, state: str) -> News | None:
    """Store the news of a turn in this state and return them.

    Return None if there are none, or the turn is gone.
    """
    if state not in KINDS:
        return None
    row = UnreadTurn(conversation_id=turn.conversation_id, turn=turn)
    try:
        insert_row(row, update=("turn",))
    except IntegrityError:
        return None
    return _make_news(turn.conversation, turn, state)


def look_at(conversation: Conversation) -> bool:
    """Mark the conversation as read; return whether anything was unread."""
    count, _deleted = UnreadTurn.objects.filter(pk=conversation.pk).delete()
    return any([bool(count), reminders.look_at(conversation)])


def group_news(news: Iterable[News]) -> dict[tuple[str, str], list[News]]:
    """Return the news by conversation and kind."""
    grouped: dict[tuple[str, str], list[News]] = {}
    for each in news:
        grouped.setdefault((each.conversation, each.kind), []).append(each)
    return grouped
