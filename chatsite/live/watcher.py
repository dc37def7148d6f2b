"""The watcher of all sockets of this process.

It closes those whose session has ended, and syncs those that have received nothing
from the channel layer. This takes a few queries every few seconds, however many sockets
there are.
"""

import asyncio
import contextvars
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic

from channels.db import database_sync_to_async

from chatsite import metrics
from chatsite.accounts import sessions
from chatsite.protocol import layer
from memory import library
from memory.database import TRANSIENT_DB_ERRORS, name_of

from . import presence, progress
from .socket_client import View

logger = logging.getLogger(__name__)

SIGNED_OUT = 4401
GONE = 4404
RESTART = 1012
SESSION_SECONDS = 3.0
LOOK_SECONDS = 0.5
SILENCE_SECONDS = 2.0
RENEW_SECONDS = 12.0
# How long a process that ends waits for the database to take its last words.
END_SECONDS = 2.0
# How long a process that ends waits for the answers to its close frames.
GOODBYE_SECONDS = 1.0


@dataclass(eq=False, slots=True)
class Socket:
    """One open socket, and the known state of its page."""

    holder: sessions.Holder
    conversation_id: int
    view: View
    join: Callable[[], Awaitable[bool]]
    sync: Callable[[], None]  # only asks for it: readers may be slow
    close: Callable[[int], Awaitable[None]]
    # None: it may have missed anything.
    last_seen: progress.ConversationProgress | None
    is_temporary: bool = False
    joined: bool = False
    has_received: bool = False
    look_at: float = field(default_factory=lambda: monotonic() + SILENCE_SECONDS)

    def note_received(self) -> None:
        self.has_received = True
        self.look_at = monotonic() + SILENCE_SECONDS

    def forget_progress(self) -> None:
        """Forget the progress that the page knows, so that it is compared again."""
        self.last_seen = None

    def catch_up(self, now: progress.ConversationProgress) -> None:
        """Sync after a silence if the conversation has progress the page can't know."""
        before, self.last_seen = self.last_seen, now
        received, self.has_received = self.has_received, False
        knows = received and self.joined and layer.health.ok
        missed_end = self.view.is_live and not now.unfinished
        shows_all = not now.unfinished and self.view.latest >= now.latest
        if missed_end or not (now == before or (knows and shows_all)):
            self.sync()


class Watcher:
    """The sockets of one event loop; a server process has one."""

    def __init__(self) -> None:
        self._sockets: set[Socket] = set()
        self._left = asyncio.Event()  # set when there is no socket
        self._left.set()
        self._tasks: list[asyncio.Task[None]] = []
        self._proven: dict[sessions.Holder, sessions.Proof] = {}

    def add_socket(self, socket: Socket) -> None:
        self._sockets.add(socket)
        self._left.clear()
        metrics.SOCKETS.inc()
        if not self._tasks:
            self._tasks = [
                self._start(self._check_sessions, SESSION_SECONDS),
                self._start(self._look, LOOK_SECONDS),
                self._start(self._renew, RENEW_SECONDS),
            ]

    def remove_socket(self, socket: Socket) -> bool:
        """Remove the socket; return False if it was removed before."""
        if socket not in self._sockets:
            return False
        self._sockets.remove(socket)
        metrics.SOCKETS.dec()
        if not self._sockets:
            self._left.set()
            for task in self._tasks:
                task.cancel()
            self._tasks = []
        return True

    def count_sockets(self, user_id: int) -> int:
        return self._by_user()[user_id]

    async def close_sockets(self) -> None:
        """Close all sockets of this process, which ends: pages reconnect at once."""
        for socket in list(self._sockets):
            await socket.close(RESTART)
        # The reactor drops what it has not yet written.
        with suppress(TimeoutError):
            async with asyncio.timeout(GOODBYE_SECONDS):
                await self._left.wait()
        try:
            async with asyncio.timeout(END_SECONDS):
                await database_sync_to_async(presence.forget_presence)()
        except (TimeoutError, *TRANSIENT_DB_ERRORS) as error:
            logger.warning("sockets not signed off: %s", name_of(error))

    def _by_user(self) -> Counter[int]:
        return Counter(socket.holder[1] for socket in self._sockets)

    def _start(
        self, act: Callable[[], Awaitable[None]], seconds: float
    ) -> asyncio.Task[None]:
        # An empty context: the first socket's request must not become everybody's.
        loop = asyncio.get_running_loop()
        return loop.create_task(
            _repeat_act(act, seconds), name=act.__name__, context=contextvars.Context()
        )

    async def _check_sessions(self) -> None:
        holders = {socket.holder for socket in self._sockets}
        find = database_sync_to_async(sessions.find_ended)
        ended = await find(holders, self._proven)
        for socket in [s for s in self._sockets if s.holder in ended]:
            metrics.SOCKETS_CUT.labels("signed_out").inc()
            await socket.close(SIGNED_OUT)

    async def _look(self) -> None:
        await self._join()
        now = monotonic()
        silent = [socket for socket in self._sockets if socket.look_at <= now]
        if not silent:
            return
        next_look = now + SILENCE_SECONDS
        for socket in silent:
            socket.look_at = next_look
        ids = {socket.conversation_id for socket in silent}
        found = await database_sync_to_async(progress.read_progress)(ids)
        # While the query waits for its thread, some receive what it finds.
        still = {socket for socket in silent if socket.look_at == next_look}
        here = still & self._sockets
        for socket in here:
            if now_there := found.get(socket.conversation_id):
                socket.catch_up(now_there)
        await self._close_gone([s for s in here if s.conversation_id not in found])

    async def _close_gone(self, gone: list[Socket]) -> None:
        """Close the sockets of deleted conversations or accounts.

        The channel layer has not delivered the deletion to them.
        """
        if not gone:
            return
        holders = {socket.holder for socket in gone}
        ended = await database_sync_to_async(sessions.find_ended)(holders)
        for socket in gone:
            await socket.close(SIGNED_OUT if socket.holder in ended else GONE)

    async def _join(self) -> None:
        """Join the groups of sockets that could not join when they opened."""
        for socket in [s for s in self._sockets if not s.joined]:
            socket.joined = await socket.join()
            if not socket.joined:
                return

    async def _renew(self) -> None:
        await database_sync_to_async(presence.renew_presence)(self._by_user())
        open_now = {s.conversation_id for s in self._sockets if s.is_temporary}
        if open_now:
            await database_sync_to_async(library.keep_open)(open_now)


async def _repeat_act(act: Callable[[], Awaitable[None]], seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds)
        try:
            await act()
        except TRANSIENT_DB_ERRORS as error:
            logger.warning("watcher: %s failed: %s", act.__name__, name_of(error))
        except Exception:
            # A failure with one socket must not stop the watch over the others.
            logger.exception("watcher: %s failed", act.__name__)


_watchers: dict[asyncio.AbstractEventLoop, Watcher] = {}


def current_watcher() -> Watcher:
    """Return the watcher of the running event loop."""
    return _watchers.setdefault(asyncio.get_running_loop(), Watcher())
