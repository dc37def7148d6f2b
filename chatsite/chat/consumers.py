"""The socket of one conversation: parses commands, asks, forwards. It starts work and
returns; no query, prompt or model is touched here.
"""

import asyncio
import logging
from collections.abc import Callable
from time import monotonic
from typing import Any

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer

from . import commands, events, runner
from .errors import CommandError

logger = logging.getLogger(__name__)

JSON_PROTOCOL = "windowpane.json"
SIGNED_OUT = 4401
CLOSE_CODES = {"signed_out": SIGNED_OUT, "not_found": 4404}
WATCH_SECONDS = 1.0
SESSION_SECONDS = 4.0
SILENCE_SECONDS = 2.0


class ConversationConsumer(AsyncWebsocketConsumer):
    client: commands.Client | None = None

    async def connect(self) -> None:
        wants_json = JSON_PROTOCOL in self.scope["subprotocols"]
        # A page can read the reason from a close code only after the handshake.
        await self.accept(JSON_PROTOCOL if wants_json else None)
        try:
            self.client = await database_sync_to_async(commands.Client.open)(self.scope)
        except CommandError as error:
            await self.close(CLOSE_CODES[error.code])
            return
        self.view = commands.JsonView() if wants_json else commands.HtmlView()
        self.heard_at = self.checked_at = monotonic()
        await self.channel_layer.group_add(self.client.group, self.channel_name)
        self.watcher = asyncio.create_task(self._watch())
        if not wants_json:
            await self._answer(events.Sync())

    async def disconnect(self, code: int) -> None:
        if self.client:
            self.watcher.cancel()
            await self.channel_layer.group_discard(self.client.group, self.channel_name)

    async def receive(
        self, text_data: str | None = None, bytes_data: bytes | None = None
    ) -> None:
        if self.client is None:
            return
        try:
            command = events.parse(text_data)
            await self._answer(command)
        except CommandError as error:
            refusal = events.Error(
                error.code, error.detail, error.client_id, error.retry_after
            )
            await self._send(self.view.error, refusal)

    async def _answer(self, command: events.Command) -> None:
        done = await database_sync_to_async(self.client.perform)(command)
        if done is commands.SIGNED_OUT:
            await self.close(SIGNED_OUT)
            return
        for event in done.answers:
            await self._send(self.view.answer, self.client, event)
        if isinstance(command, events.Sync):
            await self._send(self.view.sync, self.client)
        for event in done.published:
            await events.publish(self.client.conversation_id, event)
        if done.stopping:
            await events.hint_stop(done.stopping)
        if done.has_work:
            runner.start(self.client.conversation_id)

    async def dispatch(self, message: dict[str, Any]) -> None:
        # Channels visits the one database thread before every event; what is only
        # passed on must not wait there for somebody's query.
        if message["type"] == "chat.event":
            await self.chat_event(message)
        else:
            await super().dispatch(message)

    async def chat_event(self, message: dict[str, Any]) -> None:
        self.heard_at = monotonic()
        event = events.from_layer(message)
        if isinstance(event, events.Frame):
            text = self.view.frame(event)
            if text is None:
                await self._send(self.view.sync, self.client)
            elif text:
                await self.send(text_data=text)
        else:
            await self._send(self.view.event, self.client, event)

    async def _send(self, render: Callable[..., list[str]], *args: Any) -> None:
        for text in await database_sync_to_async(render)(*args):
            await self.send(text_data=text)

    async def _watch(self) -> None:
        """Look after the socket until it is closed."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            try:
                await self._look()
            except Exception:
                # A database that is away must not leave the socket unwatched.
                logger.exception("socket watch failed")

    async def _look(self) -> None:
        """Close when the session has ended; read the database when the layer is
        silent about a reply that is on its way."""
        now = monotonic()
        if now - self.checked_at >= SESSION_SECONDS:
            self.checked_at = now
            if not await database_sync_to_async(self.client.is_signed_in)():
                await self.close(SIGNED_OUT)
        elif self.view.is_live and now - self.heard_at >= SILENCE_SECONDS:
            self.heard_at = now
            await self._send(self.view.sync, self.client)
