"""The socket of one conversation: parses commands, starts work and forwards events.

It returns at once: no query, prompt or model is touched here.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Any

from channels.consumer import get_handler_name
from channels.db import database_sync_to_async
from channels.exceptions import StopConsumer
from channels.generic.websocket import AsyncWebsocketConsumer
from django.core.exceptions import ObjectDoesNotExist
from django.utils import translation
from django.utils.translation import gettext as _

from chatsite import languages, metrics
from chatsite.database import TRANSIENT_DB_ERRORS, TROUBLE, is_away, name_of
from chatsite.fair_queue import working_for
from chatsite.ops.load import session_of
from chatsite.protocol import events, layer
from chatsite.protocol.errors import CommandError
from chatsite.turns import runner

from . import fair_share, socket_client, watcher

logger = logging.getLogger(__name__)

JSON_PROTOCOL = "windowpane.json"
SIGNED_OUT = watcher.SIGNED_OUT
NOT_FOUND = watcher.GONE
FAILED = 1011
TRY_AGAIN_LATER = 1013
CLOSE_CODES = {
    "signed_out": SIGNED_OUT,
    "not_found": NOT_FOUND,
    "too_many_sockets": 4429,
}
UNAVAILABLE_SECONDS = 2.0
# The key of the server's transport in the scope, where it has one: see backpressure.py.
TRANSPORT = "windowpane.line"
# Django's are shorter.
MAX_SESSION_KEY = 64
# Events that wait during a sync; with more, the sync is repeated.
MAX_HELD = 500


class ConversationConsumer(AsyncWebsocketConsumer):
    client: socket_client.Client | None = None
    socket: watcher.Socket | None = None

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Commands are worked off one by one, and so are events, beside each other.

        Channels' own loop makes two tasks for every message.
        """
        self.scope, self.base_send, self.to_server = scope, self._send_to_server, send
        # Events that arrive during a sync; None when no sync is running.
        self.held: deque[events.Event] | None = None
        self.inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue(MAX_HELD)
        self.is_behind = self.is_asked = self.is_closed = self.is_released = False
        self.is_forwarding = False
        self.syncing: asyncio.Task[None] | None = None
        # A frame says what has changed since the last one, so the order has to hold.
        self.order = asyncio.Lock()
        self.transport = scope.get("extensions", {}).get(TRANSPORT)
        listening = asyncio.create_task(self._listen())
        with suppress(StopConsumer):
            try:
                while True:
                    await self.dispatch(await receive())
            finally:
                listening.cancel()
                if self.syncing:
                    self.syncing.cancel()
                self._release()

    def hear(self, message: dict[str, Any]) -> None:
        """Take what the conversation's group is told: the next words of a reply are
        sent at once if nothing is before them, all else when its turn comes."""
        event = message.get("event")
        if isinstance(event, events.Frame) and self._send_now(event):
            return
        try:
            self.inbox.put_nowait(message)
        except asyncio.QueueFull:
            self._sync_soon()

    def _send_now(self, frame: events.Frame) -> bool:
        """Past the inbox: waking the task that listens would cost more than sending it.
        False: something is before it, or the page has to be brought up to date."""
        is_first = self.inbox.empty() and not self.is_forwarding and self.held is None
        if not (is_first and self.socket and self.transport) or self.is_closed:
            return False
        try:
            texts = self.view.at_once(frame)
            for text in texts or ():
                self.transport.serverSend(text)
        except Exception:
            # The caller has others to tell; a sync brings what is missing, or fails.
            logger.exception("socket failed at a frame")
            self._sync_soon()
            return True
        if texts is None:
            return False
        self.socket.hear()
        metrics.FRAMES.inc(len(texts))
        return True

    async def _listen(self) -> None:
        with suppress(StopConsumer):
            while True:
                message = await self.inbox.get()
                self.is_forwarding = True
                await self.dispatch(message)
                self.is_forwarding = False

    async def _send_to_server(self, message: dict[str, Any]) -> None:
        """Send to the server unless the socket is closed; a failure ends the socket."""
        if self.is_closed:
            return
        self.is_closed = message["type"] == "websocket.close"
        try:
            if self.transport and (text := message.get("text")):
                # Past the layers that look at other messages only.
                self.transport.serverSend(text)
            else:
                await self.to_server(message)
        except Exception as error:
            logger.info("socket lost: %s", type(error).__name__)
            await self._close_failed()
            raise StopConsumer from error

    async def _close_failed(self) -> None:
        """Close a socket that cannot go on; the page reconnects."""
        self._release()
        if self.is_closed:
            return
        self.is_closed = True
        with suppress(Exception):  # whatever a server raises for what is closed already
            await self.to_server({"type": "websocket.close", "code": FAILED})

    async def close(self, code: int | None = None, reason: str | None = None) -> None:
        # The watcher closes many, one after the other.
        try:
            await super().close(code, reason)
        except StopConsumer:
            return

    async def dispatch(self, message: dict[str, Any]) -> None:
        # Channels' own dispatch enters the database thread before every message. Only
        # handlers that need the database go there; the others must not wait for it.
        handler = getattr(self, get_handler_name(message), None)
        if handler is None:
            logger.warning("socket: nothing takes %s", message["type"])
            return
        try:
            await handler(message)
        except StopConsumer:
            raise
        except Exception:
            logger.exception("socket failed at %s", message["type"])
            await self._close_failed()
            raise StopConsumer from None

    async def connect(self) -> None:
        wants_json = JSON_PROTOCOL in self.scope["subprotocols"]
        # A page can read the reason from a close code only after the handshake.
        await self.accept(JSON_PROTOCOL if wants_json else None)
        self.view = socket_client.JsonView() if wants_json else socket_client.HtmlView()
        self.language = languages.of_scope(self.scope)
        try:
            opener = fair_share.of(session_of(self.scope)[:MAX_SESSION_KEY])
            client = await opener.run(socket_client.Client.open, self.scope)
            await self._register(client)
        except CommandError as error:
            metrics.REFUSALS.labels(error.code).inc()
            await self.close(CLOSE_CODES[error.code])
        except TROUBLE as error:
            _log(error)
            await self.close(TRY_AGAIN_LATER)
        else:
            if not wants_json:
                self._sync_soon()
                if client.last_seen and client.last_seen.unfinished:
                    runner.start(client.conversation_id)

    async def _register(self, client: socket_client.Client) -> None:
        """Count this socket among the person's, and join the conversation's group."""
        self.client = client
        self.share = fair_share.of(client.user_id)
        self.socket = watcher.Socket(
            holder=client.holder,
            conversation_id=client.conversation_id,
            view=self.view,
            join=self._join,
            sync=self._sync_soon,
            close=self.close,
            last_seen=client.last_seen,
            is_temporary=client.is_temporary,
        )
        here = watcher.current_watcher()
        here.add(self.socket)
        try:
            count = here.count(client.user_id)
            await self.share.run(client.enter, count)
        except BaseException:
            self._release()
            raise
        self.socket.joined = await self._join()

    def _release(self) -> None:
        """Give up the place and the group, however the socket ended."""
        if self.client is None or self.is_released:
            return
        self.is_released = True
        watcher.current_watcher().remove(self.socket)
        runner.spawn(_unregister(self.client, self.hear))

    async def _join(self) -> bool:
        joined = await layer.join(self.client.group, self.hear)
        if self.is_released:
            # The socket ended while it was joining.
            await layer.leave(self.client.group, self.hear)
        return joined

    async def receive(
        self, text_data: str | None = None, bytes_data: bytes | None = None
    ) -> None:
        try:
            if self.client and not self.is_closed:
                await self.share.take_message()
                with translation.override(self.language):
                    await self._receive(text_data)
        finally:
            if self.transport:
                self.transport.handled()

    async def _receive(self, text: str | None) -> None:
        try:
            command = events.parse(text)
        except CommandError as error:
            await self._refuse(events.Error.of(error))
            return
        if isinstance(command, events.Sync):
            self.is_asked = True
            self._sync_soon()
        else:
            await self._try_command(command)

    async def _try_command(self, command: events.Command) -> bool:
        """Whether the command was done; if not, the sender is told why."""
        try:
            with translation.override(self.language):
                await self._perform(command)
        except CommandError as error:
            await self._refuse(events.Error.of(error))
        except TROUBLE as error:
            _log(error)
            await self._refuse(_unavailable(command))
        else:
            return not self.is_closed
        return False

    async def _refuse(self, error: events.Error) -> None:
        metrics.REFUSALS.labels(error.code).inc()
        for text in self.view.answer(error):
            await self.send(text_data=text)

    async def _perform(self, command: events.Command) -> None:
        done = await self.share.run(self.client.perform, command)
        if done is socket_client.SIGNED_OUT:
            await self.close(SIGNED_OUT)
            return
        conversation_id = self.client.conversation_id
        try:
            for event in done.answers:
                for text in self.view.answer(event):
                    await self.send(text_data=text)
            told = [await events.publish(conversation_id, e) for e in done.published]
            if done.stopping:
                await events.hint_stop(done.stopping)
        finally:
            # Also where the sender is gone: its message is stored, its turn claimed.
            if done.has_work:
                runner.start(conversation_id, done.claim)
        if not all(told) or (told and not self.socket.joined):
            # No event will reach this page for the command that it sent.
            self._sync_soon()

    async def chat_gone(self, message: dict[str, Any]) -> None:
        """The conversation was deleted."""
        await self.close(NOT_FOUND)

    async def chat_event(self, message: dict[str, Any]) -> None:
        if self.client is None or self.is_closed:
            return
        self.socket.hear()
        event = events.from_layer(message)
        if event is None:
            logger.warning("socket: unknown event %r", message["event"].get("type"))
            self._sync_soon()
        elif self.held is None:
            await self._forward(event)
        elif len(self.held) < MAX_HELD:
            self.held.append(event)
        else:
            self._sync_soon()

    async def _forward(self, event: events.Event) -> None:
        async with self.order:
            texts = self.view.at_once(event)
            for text in texts or ():
                await self.send(text_data=text)
        is_frame = isinstance(event, events.Frame)
        if texts is not None:
            metrics.FRAMES.inc(len(texts) if is_frame else 0)
        elif is_frame or self.share.is_spent:
            self._sync_soon()
        else:
            await self._render_event(event)

    async def _render_event(self, event: events.Event) -> None:
        try:
            async with self.order:
                rendered = self.view.event(self.client, event)
                if isinstance(event, events.Memory):
                    await self._send_rendered(rendered)
                else:
                    await self._send_whole(rendered)
        except ObjectDoesNotExist:
            self._sync_soon()  # what it speaks of is gone by now
        except TRANSIENT_DB_ERRORS as error:
            _log(error)
            self.socket.last_seen = None  # missed: to be read when the database is back

    def _sync_soon(self) -> None:
        """Start a sync; requests while one is running are served by one more."""
        self.is_behind = True
        if not self.is_closed and (self.syncing is None or self.syncing.done()):
            self.syncing = asyncio.create_task(self._sync_until_current())

    async def _sync_until_current(self) -> None:
        try:
            while self.is_behind and not self.is_closed:
                asked, self.is_asked, self.is_behind = self.is_asked, False, False
                if not asked or await self._try_command(events.Sync()):
                    await self._try_sync(asked)
        except StopConsumer:
            pass  # lost meanwhile
        except Exception:
            logger.exception("socket failed at a sync")
            await self._close_failed()

    async def _try_sync(self, asked: bool) -> None:
        try:
            await self._sync_once()
        except ObjectDoesNotExist:
            await self.close(NOT_FOUND)
        except TROUBLE as error:
            _log(error)
            self.socket.last_seen = None
            if asked:
                await self._refuse(_unavailable(None))
        finally:
            self.held = None

    async def _sync_once(self) -> None:
        async with self.order:
            self.is_behind, self.held = False, deque()
            await self._send_rendered(self.view.sync(self.client))
        while self.held:
            await self._forward(self.held.popleft())

    async def _send_rendered(self, rendered: Iterator[list[str]]) -> None:
        """Send what is rendered in the database thread, as fast as it is read."""
        with translation.override(self.language):
            while (texts := await self.share.run(next, rendered, None)) is not None:
                await self._send_texts(texts)
                if self.is_closed:
                    return

    async def _send_whole(self, rendered: Iterator[list[str]]) -> None:
        """The same for what is no longer than a turn: it takes one visit to the thread,
        where all others stand in the queue."""
        with translation.override(self.language):
            found = await self.share.run(list, rendered)
        await self._send_texts(chain.from_iterable(found))

    async def _send_texts(self, texts: Iterable[str]) -> None:
        for text in texts:
            await self.send(text_data=text)
            if self.transport:
                await self.transport.drained()


async def _unregister(client: socket_client.Client, receiver: layer.Receiver) -> None:
    await layer.leave(client.group, receiver)
    try:
        count = watcher.current_watcher().count(client.user_id)
        with working_for(client.user_id):
            await database_sync_to_async(client.leave)(count)
    except TROUBLE as error:
        _log(error)  # the next renewal puts it right


def _unavailable(command: events.Command | None) -> events.Error:
    known = events.client_id_of({"client_id": getattr(command, "client_id", None)})
    return events.Error(
        "unavailable",
        _("The database isn't responding right now. Nothing is lost; try again."),
        known,
        UNAVAILABLE_SECONDS,
    )


def _log(error: Exception) -> None:
    if is_away(error):
        logger.warning("database away: %s", name_of(error))
    else:
        logger.error("database failed", exc_info=error)


async def refuse_path(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Takes what leads to no conversation, and says so like for a missing one."""
    await receive()
    wants_json = JSON_PROTOCOL in scope["subprotocols"]
    accepted = JSON_PROTOCOL if wants_json else None
    await send({"type": "websocket.accept", "subprotocol": accepted})
    metrics.REFUSALS.labels("not_found").inc()
    await send({"type": "websocket.close", "code": NOT_FOUND})
