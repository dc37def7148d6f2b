"""The outbox of one socket: the events and syncs that it still has to send.

Its states are named here, and no other module writes to the socket. No table is read
here: the view does that, in a thread.
"""

import asyncio
import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from enum import Enum
from typing import Any

from channels.exceptions import StopConsumer
from django.core.exceptions import ObjectDoesNotExist

from chatsite import metrics
from chatsite.database import log_trouble
from chatsite.protocol import events
from memory.database import TROUBLE

from . import pieces, refusals
from .fair_share import FairShare
from .socket_client import SocketClient, View
from .watcher import GONE

logger = logging.getLogger(__name__)

# The key of the server's transport in the scope, where it has one: see backpressure.py.
TRANSPORT = "windowpane.line"
FAILED = 1011
# Events that wait; with more, the page is brought up to date instead.
MAX_QUEUED = 500
# Events about turns; a sync reads the same from the database.
OF_TURNS = (events.Frame, events.State, events.TurnEnd)

Message = dict[str, Any]


class State(Enum):
    OPENING = "It is not known yet whose socket this is."
    IDLE = "Nothing waits. The next words of a reply are sent at once."
    SENDING = "Events are sent and drawn, one after the other. Others wait."
    BEHIND = "The page has missed something. A sync is next, before all that waits."
    ASKED = "The same, and the client has asked for it. A failure is reported to it."
    SYNCING = "The page is drawn from the database. Events wait."
    CLOSED = "The close frame is sent or the connection lost. Nothing more is sent."


# A wish that is not named here changes nothing: a sync that is due stays due, and one
# that is wished for during a sync follows it.
FOLLOWING = {
    State.OPENING: {State.IDLE, State.BEHIND, State.CLOSED},
    State.IDLE: {State.SENDING, State.BEHIND, State.ASKED, State.CLOSED},
    State.SENDING: {State.IDLE, State.BEHIND, State.ASKED, State.CLOSED},
    State.BEHIND: {State.ASKED, State.SYNCING, State.CLOSED},
    State.ASKED: {State.SYNCING, State.CLOSED},
    State.SYNCING: {*State} - {State.OPENING, State.SYNCING},
    State.CLOSED: set(),
}


class Outbox:
    """The queue and the worker of one socket.

    `send` hands a message to the server, and `lost` is called when that fails.
    """

    def __init__(
        self,
        send: Callable[[Message], Awaitable[None]],
        transport: Any,
        lost: Callable[[], None],
    ) -> None:
        self.state = State.OPENING
        self._send, self._transport, self._lost = send, transport, lost
        self._queue: deque[events.Event] = deque()
        self._has_work = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None

    def start_worker(
        self,
        client: SocketClient,
        view: View,
        share: FairShare,
        check: Callable[[], Awaitable[bool]],
        miss: Callable[[], None],
    ) -> None:
        """Start to send.

        `check` returns True if the client may have the sync it asks for; `miss` is
        called when the database is away while something is drawn.
        """
        self._client, self._view, self._share = client, view, share
        self._check, self._miss = check, miss
        self._enter(State.IDLE)
        self._worker = asyncio.create_task(self._work())

    @property
    def is_closed(self) -> bool:
        return self.state is State.CLOSED

    def queue_event(self, event: events.Event) -> None:
        """Queue an event, or send it at once.

        The next words of a reply are sent at once if the queue is empty: waking the
        worker would cost more than sending them. All other events are sent in order.
        """
        if self.is_closed:
            return
        is_free = self.state is State.IDLE and self._transport
        if is_free and isinstance(event, events.Frame) and self._transport.is_flowing:
            self._send_now(event)
        elif self._queue and _replaces_frame(event, self._queue[-1]):
            self._queue[-1] = event
        else:
            self._queue.append(event)
            if len(self._queue) > MAX_QUEUED:
                self._make_room()
            if self.state is State.IDLE:
                self._enter(State.SENDING)

    def sync(self, *, is_asked: bool = False) -> None:
        """Bring the page up to date from the database as soon as possible."""
        self._enter(State.ASKED if is_asked else State.BEHIND)

    async def send_answer(self, event: events.Event) -> None:
        """Send the answer to the client's command, before all events that wait."""
        for text in self._view.draw_answer(event):
            await self.hand_over({"type": "websocket.send", "text": text})

    async def send_error(self, error: events.Error) -> None:
        metrics.REFUSALS.labels(error.code).inc()
        await self.send_answer(error)

    async def close(self, code: int) -> None:
        """Send the close frame at once and drop all events that wait."""
        if self.is_closed:
            return
        self._enter(State.CLOSED)
        self._queue.clear()
        with suppress(Exception):  # whatever a server raises for what is closed already
            await self._send({"type": "websocket.close", "code": code})
            return
        self._lost()

    async def close_failed(self) -> None:
        """Close a socket that cannot go on; the page reconnects."""
        self._lost()
        await self.close(FAILED)

    def stop_worker(self) -> None:
        """Stop the worker: the connection is gone."""
        self._enter(State.CLOSED)
        if self._worker:
            self._worker.cancel()

    async def hand_over(self, message: Message) -> None:
        """Give the server a message unless the socket is closed.

        A failure closes the socket and raises StopConsumer.
        """
        if self.is_closed:
            return
        try:
            if self._transport and (text := message.get("text")):
                # Past the layers that look at other messages only.
                self._transport.serverSend(text)
            else:
                await self._send(message)
        except Exception as error:
            logger.info("socket lost: %s", type(error).__name__)
            await self.close_failed()
            raise StopConsumer from error

    def _enter(self, state: State) -> None:
        """Go on to this state if it may follow the present one."""
        if state in FOLLOWING[self.state]:
            self.state = state
            self._has_work.set()

    def _send_now(self, frame: events.Frame) -> None:
        try:
            texts = self._view.at_once(frame)
            for text in texts or ():
                self._transport.serverSend(text)
        except Exception:
            # The caller has other sockets to serve; a sync repairs this one, or fails.
            logger.exception("socket failed at a frame")
            texts = None
        if texts is None:
            self.sync()
        else:
            metrics.FRAMES.inc(len(texts))

    def _make_room(self) -> None:
        """Drop queued events that a sync replaces, then the oldest, and sync."""
        kept = [
            event
            for event in self._queue
            if not (isinstance(event, OF_TURNS) or getattr(event, "is_synced", False))
        ]
        self._queue = deque(kept[-MAX_QUEUED:])
        self.sync()

    async def _work(self) -> None:
        try:
            while not self.is_closed:
                await self._take_step()
                # Of the frames that come meanwhile only the newest is kept.
                await self._until_read()
        except StopConsumer:
            pass  # lost meanwhile
        except Exception:
            logger.exception("socket failed while %s", self.state.name)
            await self.close_failed()

    async def _take_step(self) -> None:
        is_due = self.state in (State.BEHIND, State.ASKED)
        is_asked = self.state is State.ASKED
        try:
            if is_due:
                self._enter(State.SYNCING)
                if not is_asked or await self._check():
                    drawn = self._view.sync(self._client)
                    await self._draw(drawn, pieces.SLICE_SECONDS)
            elif self._queue:
                self._enter(State.SENDING)
                await self._send_event(self._queue.popleft())
            else:
                self._enter(State.IDLE)
                self._has_work.clear()
                await self._has_work.wait()
        except ObjectDoesNotExist:
            # The conversation is gone, or the object of an event.
            if is_due:
                await self.close(GONE)
            else:
                self.sync()
        except TROUBLE as error:
            log_trouble(error)
            self._miss()
            if is_asked:
                await self.send_error(refusals.make_unavailable_error(events.Sync()))

    async def _send_event(self, event: events.Event) -> None:
        texts = self._view.at_once(event)
        is_frame = isinstance(event, events.Frame)
        if texts is not None:
            await self._send_texts(texts)
            metrics.FRAMES.inc(len(texts) if is_frame else 0)
        elif is_frame:
            self.sync()
        elif self._share.is_spent:
            # One sync for all events that wait.
            self._queue.clear()
            self.sync()
        else:
            # A fragment no longer than a turn takes one visit to the thread, in whose
            # queue all others wait.
            is_long = isinstance(event, events.Memory)
            seconds = pieces.SLICE_SECONDS if is_long else math.inf
            await self._draw(self._view.draw_event(self._client, event), seconds)

    async def _draw(self, drawn: Iterator[list[str]], seconds: float) -> None:
        """Send fragments that are drawn in their thread, as fast as they are read."""
        is_all = False
        while not (is_all or self.is_closed):
            texts, is_all = await self._share.run_drawing(
                pieces.draw_slice, drawn, seconds
            )
            await self._send_texts(texts)

    async def _send_texts(self, texts: Iterable[str]) -> None:
        for text in filter(None, texts):
            await self._until_read()
            await self.hand_over({"type": "websocket.send", "text": text})

    async def _until_read(self) -> None:
        if self._transport:
            await self._transport.drained()


def _replaces_frame(event: events.Event, earlier: events.Event) -> bool:
    """Return True if this frame contains the earlier one.

    A frame has the words since `base`.
    """
    return (
        isinstance(event, events.Frame)
        and isinstance(earlier, events.Frame)
        and (event.turn, event.attempt) == (earlier.turn, earlier.attempt)
        and event.base <= earlier.base
    )
