"""Commands and events of the socket, parsed once, at the edge, into small values.

Events are published to every socket of a conversation through the channel layer. An
event on the layer is a hint; the database is the truth.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

from django.utils.translation import gettext as _

from chatsite.plugins import (
    AppCommand,
    AppEvent,
    find_command_readers,
    find_event_kinds,
)
from chatsite.strict_json import make_object
from memory.compaction.compactor import CompactionOutcome
from memory.models import Message

from . import layer
from .errors import CommandError

# A text of 32,000 characters, each escaped as a surrogate pair, and some air.
MAX_FRAME_CHARS = 400_000
MAX_ID = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Send:
    """`attachments`: ids of files that were uploaded before."""

    client_id: object
    text: object
    attachments: object = ()


@dataclass(frozen=True, slots=True)
class Stop:
    turn: int


@dataclass(frozen=True, slots=True)
class Retry:
    turn: int


@dataclass(frozen=True, slots=True)
class Regenerate:
    turn: int


@dataclass(frozen=True, slots=True)
class Edit:
    seq: int
    client_id: object
    text: object


@dataclass(frozen=True, slots=True)
class Sync:
    pass


Command = Send | Stop | Retry | Regenerate | Edit | Sync | AppCommand


def parse_command(text: str | None) -> Command:
    """Return the command in a text frame.

    Raises CommandError, whatever the frame holds.
    """
    value = _decode_frame(text)
    kind = value.get("type")
    readers = READERS | find_command_readers()
    if isinstance(kind, str) and (read := readers.get(kind)):
        return read(value)
    raise CommandError(
        "unknown_command",
        _("The type must be one of %(types)s.") % {"types": ", ".join(readers)},
        client_id=client_id_of(value),
    )


def client_id_of(value: object) -> str | None:
    """Return the client_id to name in an error; None: none that can be echoed."""
    client_id = value.get("client_id") if isinstance(value, dict) else None
    is_short = isinstance(client_id, str) and len(client_id) <= 64
    return client_id if is_short and client_id.isprintable() else None


def _decode_frame(text: str | None) -> dict[str, Any]:
    if text is None:
        raise CommandError(
            "bad_frame", _("Send text frames with JSON, not binary ones.")
        )
    if len(text) > MAX_FRAME_CHARS:
        words = _("A frame may have %(limit)s characters.")
        raise CommandError("too_long", words % {"limit": f"{MAX_FRAME_CHARS:,}"})
    try:
        value = json.loads(text, object_pairs_hook=make_object)
    except (ValueError, RecursionError):
        raise CommandError("bad_frame", _("The frame is not valid JSON.")) from None
    if not isinstance(value, dict):
        raise CommandError("bad_frame", _("The frame must be a JSON object."))
    return value


def read_integer(value: Mapping[str, Any], key: str) -> int:
    """Return a positive number; forms send it as digits, which are accepted too."""
    number = value.get(key)
    if isinstance(number, str) and number.isascii() and number.isdigit():
        number = int(number[:20])
    if type(number) is int and 0 < number <= MAX_ID:
        return number
    wrong = _("%(name)s must be a positive number.") % {"name": key}
    raise CommandError("bad_frame", wrong, client_id=client_id_of(value))


# The reader of each type of command.
READERS: dict[str, Callable[[dict[str, Any]], Command]] = {
    "send": lambda value: Send(
        value.get("client_id"), value.get("text"), value.get("attachments", ())
    ),
    "stop": lambda value: Stop(read_integer(value, "turn")),
    "retry": lambda value: Retry(read_integer(value, "turn")),
    "regenerate": lambda value: Regenerate(read_integer(value, "turn")),
    "edit": lambda value: Edit(
        read_integer(value, "seq"), value.get("client_id"), value.get("text")
    ),
    "sync": lambda value: Sync(),
}


@dataclass(frozen=True, slots=True)
class Ack:
    type: ClassVar = "ack"
    client_id: str
    seq: int
    turn: int
    position: int


@dataclass(frozen=True, slots=True)
class State:
    type: ClassVar = "state"
    turn: int
    state: str
    position: int = 0


@dataclass(frozen=True, slots=True)
class Frame:
    """The receiver's text is `known[:base] + tail`, counted in code points."""

    type: ClassVar = "frame"
    turn: int
    attempt: int
    base: int
    tail: str

    def split_tail(self, most: int) -> Iterator["Frame"]:
        """Yield frames with the same text, each of at most `most` characters."""
        if len(self.tail) <= most:
            yield self
            return
        for at in range(0, len(self.tail), most):
            tail = self.tail[at : at + most]
            yield replace(self, base=self.base + at, tail=tail)


class EndedTurn(Protocol):
    """The attributes of an ended turn that events use (chatsite.turns.models.Turn)."""

    pk: int
    state: str
    text: str
    reply: Message | None
    also_published: Sequence["Event"]


@dataclass(frozen=True, slots=True)
class TurnEnd:
    type: ClassVar = "end"
    turn: int
    state: str
    seq: int | None
    text: str

    @classmethod
    def from_turn(cls, turn: EndedTurn) -> "TurnEnd":
        seq = turn.reply.seq if turn.reply else None
        return cls(turn.pk, turn.state, seq, turn.text)


def make_end_events(turn: EndedTurn) -> Iterator["Event"]:
    """Yield the events of a turn that has just ended, in the order to publish them."""
    yield from turn.also_published
    yield TurnEnd.from_turn(turn)


@dataclass(frozen=True, slots=True)
class Memory:
    """A change of the model's view, or a failed compaction.

    `version`: the newest one made.
    """

    type: ClassVar = "memory"
    version: int | None
    state: str
    error: str = ""

    @classmethod
    def from_outcome(cls, outcome: CompactionOutcome) -> "Memory":
        version = outcome.versions[-1] if outcome.versions else None
        return cls(version, outcome.state, outcome.error)


@dataclass(frozen=True, slots=True)
class Title:
    type: ClassVar = "title"
    title: str


@dataclass(frozen=True, slots=True)
class JobState:
    """Work that outlasts requests has begun or ended: a proposal, a compaction."""

    type: ClassVar = "job"
    kind: str
    state: str


@dataclass(frozen=True, slots=True)
class Error:
    type: ClassVar = "error"
    code: str
    detail: str
    client_id: str | None = None
    retry_after: float | None = None
    seq: int | None = None  # what has taken the place of the message that was meant

    @classmethod
    def from_error(cls, error: CommandError) -> "Error":
        return cls(
            error.code, error.detail, error.client_id, error.retry_after, error.seq
        )


Event = Ack | State | Frame | TurnEnd | Memory | Title | JobState | AppEvent | Error


def to_json(event: Event) -> dict[str, Any]:
    """Return the event as JSON clients get it; errors leave out their empty fields."""
    value = {"type": event.type}
    value.update((name, getattr(event, name)) for name in event.__slots__)
    if isinstance(event, Error):
        return {key: part for key, part in value.items() if part is not None}
    return value


PUBLISHED = (State, Frame, TurnEnd, Memory, Title, JobState)
EVENTS = {kind.type: kind for kind in PUBLISHED}


def from_layer(message: dict[str, Any]) -> Event | None:
    """Return the event that this process or another one has sent.

    None for an unknown event: another process may be newer.
    """
    if isinstance(message["event"], Event):
        return message["event"]
    values = dict(message["event"])
    try:
        name = values.pop("type")
        return (EVENTS.get(name) or find_event_kinds()[name])(**values)
    except (KeyError, TypeError):
        return None


def group_of(conversation_id: int) -> str:
    return f"conversation.{conversation_id}"


def group_of_user(user_id: int) -> str:
    return f"person.{user_id}"


def _stop_group(turn_id: int) -> str:
    return f"stop.{turn_id}"


def deliver_event(conversation_id: int, event: Event) -> None:
    """Send the event to this process's sockets of the conversation."""
    layer.deliver_here(
        group_of(conversation_id), {"type": "chat.event", "event": event}
    )


async def offer_event(conversation_id: int, event: Event) -> int | None:
    """Send the event to other processes; return how many of them received it.

    None: perhaps none did. A layer that is away only delays them.
    """
    if not layer.is_shared():
        return 0
    message = {"type": "chat.event", "event": to_json(event)}
    return await layer.offer_to_processes(group_of(conversation_id), message)


async def publish_event(conversation_id: int, event: Event) -> bool:
    """Send the event to every socket of the conversation.

    False: perhaps other processes received nothing.
    """
    deliver_event(conversation_id, event)
    return await offer_event(conversation_id, event) is not None


async def publish_change(conversation_id: int) -> None:
    """Let every open page of the conversation draw its right pane again."""
    await publish_event(conversation_id, Memory(None, "changed"))


async def publish_to_user(user_id: int, event: Event) -> None:
    """Send the event to every socket of the user, whatever conversation it is of."""
    group = group_of_user(user_id)
    layer.deliver_here(group, {"type": "chat.event", "event": event})
    await layer.spread_to_processes(
        group, {"type": "chat.event", "event": to_json(event)}
    )


async def tell_gone(conversation_id: int) -> None:
    """Let every socket of a conversation close: it is deleted."""
    await _tell_group(group_of(conversation_id), {"type": "chat.gone"})


async def hint_stop(turn_id: int) -> None:
    """Wake the runner of a turn at once; without it, its next checkpoint sees it."""
    await _tell_group(_stop_group(turn_id), {"type": "stop"})


async def _tell_group(group: str, message: dict[str, Any]) -> None:
    layer.deliver_here(group, message)
    await layer.spread_to_processes(group, message)


@asynccontextmanager
async def stop_hints(turn_id: int) -> AsyncIterator[asyncio.Event]:
    """Yield an asyncio.Event that is set when any process asks this turn to stop."""
    stop = asyncio.Event()

    def receive_stop(message: dict[str, Any]) -> None:
        stop.set()

    try:
        # Without it, the next checkpoint sees the wish to stop.
        await layer.join_group(_stop_group(turn_id), receive_stop)
        yield stop
    finally:
        await layer.leave_group(_stop_group(turn_id), receive_stop)
