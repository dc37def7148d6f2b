"""The events and commands of news, for the pages and clients of a user."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from channels.db import database_sync_to_async

from chatsite import slots
from chatsite.features.tools.tool_loop import reminders
from chatsite.features.tools.tool_loop.reminders import News
from chatsite.live.socket_client import CommandEffect, SocketClient
from chatsite.pages import parts
from chatsite.plugins import AppCommand, AppEvent
from chatsite.protocol import events
from chatsite.turns.models import Turn
from memory.models import Conversation

from .parts import draw_now
from .services import describe_news, find_news, group_news, look_at, note_turn

if TYPE_CHECKING:
    from chatsite.live.fragments import LivePage


@dataclass(frozen=True, slots=True)
class Unread(AppEvent):
    """The `count` unread news of one kind in a conversation.

    `seq` and `text` are of the newest. With a count of 0 all were read.
    """

    type: ClassVar = "unread"
    turn: ClassVar = 0
    conversation: str
    count: int
    seq: int | None
    text: str
    kind: str = ""

    @classmethod
    def from_news(cls, news: list[News]) -> Self:
        newest = news[-1]
        values = (newest.conversation, len(news), newest.seq, newest.text)
        return cls(*values, newest.kind)

    def draw_at_once(self, page: "LivePage") -> str | None:
        """One line, or none, in place of what the page had of a turn."""
        if self.kind == reminders.KIND:
            return None
        news = News(self.conversation, self.seq, self.text, self.kind)
        return draw_now(self.conversation, news if self.count else None)

    def draw_on(self, page: "LivePage", client: "SocketClient") -> Iterator[str]:
        """Yield all news of the user, and announce one of this conversation."""
        news = News(self.conversation, self.seq, self.text, self.kind)
        is_here = self.count and self.conversation == str(client.uuid)
        yield slots.draw("user", user_id=client.user_id, is_fragment=True)
        yield parts.render_status(describe_news(news) if is_here else "")


@dataclass(frozen=True, slots=True)
class SeenCommand(AppCommand):
    """The command that marks the news of a conversation as read."""

    def apply_to(self, conversation: Conversation) -> CommandEffect:
        if not look_at(conversation):
            return CommandEffect()
        return CommandEffect(personal=(Unread(str(conversation.uuid), 0, None, ""),))


def list_standing_news(
    client: SocketClient, turns: Iterable[int]
) -> Iterable[AppEvent]:
    """Return the unread news of all conversations."""
    return map(Unread.from_news, group_news(find_news(client.user_id)).values())


async def tell_of_turn(turn: Turn, state: str, **_: object) -> None:
    """Publish that a turn has ended, or waits for its user."""
    news = await database_sync_to_async(note_turn)(turn, state)
    if news:
        owner = turn.conversation.owner_id
        await events.publish_to_user(owner, Unread.from_news([news]))


async def tell_of_reminder(conversation: Conversation, **_: object) -> None:
    """Publish that a reminder has come into the conversation."""
    find = database_sync_to_async(reminders.find_unread)
    grouped = group_news(await find(conversation.owner_id))
    # None: it was looked at already.
    if news := grouped.get((str(conversation.uuid), reminders.KIND)):
        await events.publish_to_user(conversation.owner_id, Unread.from_news(news))
