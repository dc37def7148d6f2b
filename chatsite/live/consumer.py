"""The socket of one conversation: parses commands, starts work and passes events on.

It returns at once: no query, prompt or model is touched here. outbox.py decides what is
sent when.
"""

import logging
from contextlib import suppress
from functools import partial
from typing import Any

from channels.consumer import get_handler_name
from channels.db import database_sync_to_async
from channels.exceptions import StopConsumer
from channels.generic.websocket import AsyncWebsocketConsumer
from django.utils import translation

from chatsite import languages, metrics
from chatsite.database import log_trouble
from chatsite.fair_queue import work_owner
from chatsite.ops.load import session_of
from chatsite.protocol import events, layer
from chatsite.protocol.errors import CommandError
from chatsite.turns import runner
from memory.database import TROUBLE

from . import fair_share, refusals, socket_client, watcher
from .outbox import TRANSPORT, Outbox
from .socket_client import HtmlView, JsonView

logger = logging.getLogger(__name__)

JSON_PROTOCOL = "windowpane.json"
TRY_AGAIN_LATER = 1013
CLOSE_CODES = {
    "signed_out": watcher.SIGNED_OUT,
    "not_found": watcher.GONE,
    "too_many_sockets": 4429,
}
# Django's are shorter.
MAX_SESSION_KEY = 64


class ConversationConsumer(AsyncWebsocketConsumer):
    socket: watcher.Socket | None = None

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Handle commands one by one; the outbox sends events in a separate task.

        (Channels' own loop makes two tasks for every message.)
        """
        self.scope = scope
        self.transport = scope.get("extensions", {}).get(TRANSPORT)
        self.outbox = Outbox(send, self.transport, lost=self._release)
        self.base_send = self.outbox.hand_over
        with suppress(StopConsumer):
            try:
                while True:
                    await self.dispatch(await receive())
            finally:
                await self.disconnect()

    async def dispatch(self, message: dict[str, Any]) -> None:
        # Channels' own dispatch enters the database thread before every message. Only
        # handlers that need the database go there; the others must not wait for it.
        try:
            await getattr(self, get_handler_name(message))(message)
        except StopConsumer:
            raise
        except Exception:
            logger.exception("socket failed at %s", message["type"])
            await self.outbox.close_failed()
            raise StopConsumer from None

    async def connect(self) -> None:
        wants_json = JSON_PROTOCOL in self.scope["subprotocols"]
        # A page can read the reason from a close code only after the handshake.
        await self.accept(JSON_PROTOCOL if wants_json else None)
        # Also of the outbox, whose task is made here.
        translation.activate(languages.of_scope(self.scope))
        view = JsonView() if wants_json else HtmlView(self.scope["query_string"])
        try:
            opener = fair_share.find_fair_share(
                session_of(self.scope)[:MAX_SESSION_KEY]
            )
            client = await opener.run(socket_client.SocketClient.from_scope, self.scope)
            await self._register(client, view)
        except CommandError as error:
            metrics.REFUSALS.labels(error.code).inc()
            await self.outbox.close(CLOSE_CODES[error.code])
        except TROUBLE as error:
            log_trouble(error)
            await self.outbox.close(TRY_AGAIN_LATER)
        else:
            if not wants_json:
                self.outbox.sync()
                if client.last_seen and client.last_seen.unfinished:
                    runner.start_turns(client.conversation_id)

    async def disconnect(self, code: int | None = None) -> None:
        """Release all resources of the socket, also if the server cancels it."""
        self.outbox.stop_worker()
        self._release()

    async def receive(
        self, text_data: str | None = None, bytes_data: bytes | None = None
    ) -> None:
        try:
            if not self.outbox.is_closed:
                await self.share.take_message()
                await self._receive(text_data)
        finally:
            if self.transport:
                self.transport.handled()

    def handle_group_message(self, message: dict[str, Any]) -> None:
        """Handle a message of one of the groups that this socket has joined."""
        match message["type"]:
            case "chat.event":
                self.chat_event(message)
            case "chat.gone":
                self.chat_gone(message)
            case unknown:
                logger.warning("socket: nothing takes %s", unknown)

    def chat_event(self, message: dict[str, Any]) -> None:
        self.socket.note_received()
        event = events.from_layer(message)
        if event is None:
            logger.warning("socket: unknown event %r", message["event"].get("type"))
            self.outbox.sync()
        else:
            self.outbox.queue_event(event)

    def chat_gone(self, message: dict[str, Any]) -> None:
        """Close the socket, whose conversation was deleted."""
        runner.spawn_task(self.outbox.close(watcher.GONE))

    async def _register(
        self, client: socket_client.SocketClient, view: socket_client.View
    ) -> None:
        """Count this socket among the user's, and join the conversation's group."""
        self.client = client
        # It holds for all tasks that are started for this socket, too.
        work_owner.set(client.user_id)
        self.share = fair_share.find_fair_share(client.user_id)
        self.socket = watcher.Socket(
            holder=client.holder,
            conversation_id=client.conversation_id,
            view=view,
            join=self._join,
            sync=self.outbox.sync,
            close=self.outbox.close,
            last_seen=client.last_seen,
            is_temporary=client.is_temporary,
        )
        here = watcher.current_watcher()
        here.add_socket(self.socket)
        try:
            count = here.count_sockets(client.user_id)
            await self.share.run(client.enter_presence, count)
        except BaseException:
            self._release()
            raise
        check = partial(self._try_command, events.Sync())
        self.outbox.start_worker(
            client, view, self.share, check, self.socket.forget_progress
        )
        self.socket.joined = await self._join()

    def _release(self) -> None:
        """Unregister the socket from the watcher, the presence table and its groups."""
        if self.socket and watcher.current_watcher().remove_socket(self.socket):
            runner.spawn_task(
                _unregister_client(self.client, self.handle_group_message)
            )

    async def _join(self) -> bool:
        groups = self.client.groups
        joined = [
            await layer.join_group(group, self.handle_group_message) for group in groups
        ]
        if self.outbox.is_closed:
            # The socket ended while it was joining.
            await _leave_groups(self.client, self.handle_group_message)
        return all(joined)

    async def _receive(self, text: str | None) -> None:
        try:
            command = events.parse_command(text)
        except CommandError as error:
            await self.outbox.send_error(events.Error.from_error(error))
            return
        if isinstance(command, events.Sync):
            self.outbox.sync(is_asked=True)
        else:
            await self._try_command(command)

    async def _try_command(self, command: events.Command) -> bool:
        """Perform the command; return False after sending the error if it fails."""
        try:
            await self._perform(command)
        except CommandError as error:
            await self.outbox.send_error(events.Error.from_error(error))
        except TROUBLE as error:
            log_trouble(error)
            await self.outbox.send_error(refusals.make_unavailable_error(command))
        else:
            return not self.outbox.is_closed
        return False

    async def _perform(self, command: events.Command) -> None:
        done = await self.share.run(self.client.perform_command, command)
        if done is socket_client.SIGNED_OUT:
            await self.outbox.close(watcher.SIGNED_OUT)
            return
        conversation_id = self.client.conversation_id
        try:
            for event in done.answers:
                await self.outbox.send_answer(event)
            told = [
                await events.publish_event(conversation_id, e) for e in done.published
            ]
            for event in done.personal:
                await events.publish_to_user(self.client.user_id, event)
            if done.stopping:
                await events.hint_stop(done.stopping)
        finally:
            # Also where the sender is gone: its message is stored, its turn claimed.
            if done.has_work:
                runner.start_turns(conversation_id, done.claim)
        if not all(told) or (told and not self.socket.joined):
            # No event will reach this page for the command that it sent.
            self.outbox.sync()


async def _leave_groups(
    client: socket_client.SocketClient, receiver: layer.Receiver
) -> None:
    for group in client.groups:
        await layer.leave_group(group, receiver)


async def _unregister_client(
    client: socket_client.SocketClient, receiver: layer.Receiver
) -> None:
    await _leave_groups(client, receiver)
    try:
        count = watcher.current_watcher().count_sockets(client.user_id)
        await database_sync_to_async(client.leave_presence)(count)
    except TROUBLE as error:
        log_trouble(error)  # the next renewal puts it right


async def refuse_path(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Accept a socket of an unknown path, and close it like a missing conversation."""
    await receive()
    wants_json = JSON_PROTOCOL in scope["subprotocols"]
    accepted = JSON_PROTOCOL if wants_json else None
    await send({"type": "websocket.accept", "subprotocol": accepted})
    metrics.REFUSALS.labels("not_found").inc()
    await send({"type": "websocket.close", "code": watcher.GONE})
