"""Groups of receivers and the delivery of messages to them.

Receivers of this process get a message at once and without a copy, those of other
processes through the channel layer, where there is one.

Every message is a hint, which may come late or never. No call here fails or holds up
its caller for long; what a hint did not bring is read from the database.
"""

import asyncio
import contextvars
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from channels.exceptions import ChannelFull
from channels.layers import InMemoryChannelLayer, get_channel_layer

from chatsite import metrics
from memory.leases import PROCESS

if TYPE_CHECKING:
    from .pubsub import PubSubLayer

logger = logging.getLogger(__name__)

CALL_SECONDS = 1.0
# How long a layer that failed is left alone before one call tries it again.
PAUSE_SECONDS = 5.0
RESTART_SECONDS = 1.0
# How often the layer is asked for groups that no other process has joined. One that
# joins reads the database first.
ASK_SECONDS = 1.0


class _Health:
    """The last answer of the layer, good or bad, and the time of the next try."""

    def __init__(self) -> None:
        self.ok = True
        self._next_try = 0.0

    def may_try(self) -> bool:
        if self.ok:
            return True
        if monotonic() < self._next_try:
            return False
        # The others stay away while this one finds out.
        self._next_try = monotonic() + PAUSE_SECONDS
        return True

    def note(self, *, ok: bool) -> None:
        self.ok = ok
        self._next_try = 0.0 if ok else monotonic() + PAUSE_SECONDS


health = _Health()

# Takes a message at once, in the event loop in which it joined.
Receiver = Callable[[dict[str, Any]], None]
_members: dict[str, dict[Receiver, asyncio.AbstractEventLoop]] = {}


def deliver_here(group: str, message: dict[str, Any]) -> None:
    """Deliver the message to the members of this process."""
    members = _members.get(group)
    if not members:
        return
    here = asyncio.get_running_loop()
    for receiver, loop in list(members.items()):
        if loop is here:
            receiver(message)
        elif not loop.is_closed():
            loop.call_soon_threadsafe(receiver, message)


def is_shared() -> bool:
    """Return whether other processes may be reached through the layer."""
    return not isinstance(get_channel_layer(), InMemoryChannelLayer)


async def spread_to_processes(group: str, message: dict[str, Any]) -> bool:
    """Send to the members in other processes; False: perhaps they received nothing."""
    return await offer_to_processes(group, message) is not None


async def offer_to_processes(group: str, message: dict[str, Any]) -> int | None:
    """Send to the members in other processes; return how many processes received it.

    None: perhaps none did.
    """
    if not is_shared():
        return 0
    if not health.may_try():
        return None
    # As release 0.1.0 reads it, too, beside which this one is started.
    envelope = {**message, "group": group, "from": PROCESS}
    is_sent, count = await _ask_layer("group_send", group, envelope)
    return count if is_sent else None


@dataclass(slots=True)
class _UnheardGroups:
    """Groups that no other process has joined, as far as is known.

    Redis is asked for all of them in one call. A message to each costs more: this
    process, which has joined them, receives it too.
    """

    groups: set[str] = field(default_factory=set)
    # Those to which something was to be sent since the last question.
    wanted: set[str] = field(default_factory=set)
    ask_at: float = 0.0
    task: asyncio.Task[None] | None = None

    async def ask(self) -> None:
        asked, self.wanted = self.wanted, set()
        is_known, heard = await _ask_layer("find_heard", asked)
        self.groups &= (asked | self.wanted) - heard if is_known else set()


_unheard: WeakKeyDictionary[asyncio.AbstractEventLoop, _UnheardGroups] = (
    WeakKeyDictionary()
)


def _unheard_groups() -> _UnheardGroups:
    return _unheard.setdefault(asyncio.get_running_loop(), _UnheardGroups())


def note_unheard(group: str) -> None:
    """Note that no other process has received what was sent to the group."""
    unheard = _unheard_groups()
    unheard.groups.add(group)
    unheard.wanted.add(group)


def may_be_heard(group: str) -> bool:
    """Return False if no other process had joined the group when it was last asked for.

    That is a second ago at most, as long as replies are written.
    """
    if not is_shared():
        return False
    unheard = _unheard_groups()
    if group not in unheard.groups:
        return True
    unheard.wanted.add(group)
    if monotonic() >= unheard.ask_at:
        unheard.ask_at = monotonic() + ASK_SECONDS
        unheard.task = asyncio.create_task(unheard.ask())
    return False


async def join_group(group: str, receiver: Receiver) -> bool:
    """Add a receiver to the group; return whether other processes reach it too.

    False: try again later; until then only this process reaches it.
    """
    loop = asyncio.get_running_loop()
    _members.setdefault(group, {})[receiver] = loop
    if not is_shared():
        return True
    if not health.may_try():
        return False
    return await _call_layer("group_add", group, await _channel_of(loop))


async def leave_group(group: str, receiver: Receiver) -> None:
    members = _members.get(group, {})
    members.pop(receiver, None)
    if members:
        return
    _members.pop(group, None)
    if is_shared():
        # Tried in any case: the part of it that is in this process has to happen.
        await _call_layer(
            "group_discard", group, await _channel_of(asyncio.get_running_loop())
        )


@dataclass(frozen=True, slots=True)
class _Reader:
    """The task that receives other processes' messages for one event loop."""

    bearer: "PubSubLayer"
    channel: str
    task: asyncio.Task[None]


_readers: WeakKeyDictionary[asyncio.AbstractEventLoop, _Reader] = WeakKeyDictionary()


async def _channel_of(loop: asyncio.AbstractEventLoop) -> str:
    bearer = get_channel_layer()
    reader = _readers.get(loop)
    if reader is None or reader.bearer is not bearer or reader.task.done():
        channel = await bearer.new_channel()
        task = loop.create_task(
            _listen_to_layer(bearer, channel), context=contextvars.Context()
        )
        reader = _readers[loop] = _Reader(bearer, channel, task)
    return reader.channel


async def _listen_to_layer(bearer: "PubSubLayer", channel: str) -> None:
    while True:
        try:
            await _read_messages(bearer, channel)
        except Exception:
            # Without a reader this process would receive nothing more, and not log it.
            logger.exception("layer: the reader failed")
        await asyncio.sleep(RESTART_SECONDS)


async def _read_messages(bearer: "PubSubLayer", channel: str) -> None:
    has_warned = False
    while True:
        match await bearer.receive(channel):
            case {"group": str(group), "from": sender, "type": str(kind), **rest}:
                if sender != PROCESS:
                    deliver_here(group, {"type": kind, **rest})
            case _ if not has_warned:
                # Sockets that receive nothing read the database.
                has_warned = True
                logger.warning("layer: skipped what another version of the site says")


async def _call_layer(method: str, *args: Any) -> bool:
    is_done, _ = await _ask_layer(method, *args)
    return is_done


async def _ask_layer(method: str, *args: Any) -> tuple[bool, Any]:
    """Call a method of the layer; return whether it succeeded, and its answer."""
    bearer = get_channel_layer()
    try:
        answer = await _limit_time(getattr(bearer, method)(*args))
    except ChannelFull:
        logger.warning("layer: %s found a channel full", method)
        return False, None
    except bearer.LOST as error:
        metrics.LAYER_FAILURES.inc()
        if health.ok:
            logger.warning("layer: %s failed: %s", method, type(error).__name__)
        health.note(ok=False)
        return False, None
    if not health.ok:
        logger.warning("layer: answers again")
    health.note(ok=True)
    return True, answer


# Strong references to calls that are still being cancelled.
_given_up: set[asyncio.Task[Any]] = set()


async def _limit_time(call: Coroutine[Any, Any, Any]) -> Any:
    """Return the result of the call, or raise TimeoutError after CALL_SECONDS.

    A cancelled call may still wait for a lock or for its connection to close, which
    asyncio.timeout() would wait for too.
    """
    task = asyncio.create_task(call)
    try:
        done, _ = await asyncio.wait({task}, timeout=CALL_SECONDS)
        if not done:
            raise TimeoutError
        return task.result()
    finally:
        give_up_task(task)


def give_up_task(task: asyncio.Task[Any]) -> None:
    """Cancel what waits for the layer, and do not wait until it has noticed."""
    task.cancel()
    _given_up.add(task)
    task.add_done_callback(_forget_call)


def _forget_call(task: asyncio.Task[Any]) -> None:
    _given_up.discard(task)
    if not task.cancelled():
        task.exception()
