"""The socket of one conversation: parses commands, asks, forwards. It starts work and
returns; no query, prompt or model is touched here.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.utils import translation
from django.utils.translation import gettext as _

from . import commands, events, languages, layer, metrics, runner, watcher
from .database import AWAY, TROUBLE, is_away, name_of
from .errors import CommandError

logger = logging.getLogger(__name__)

JSON_PROTOCOL = "windowpane.json"
SIGNED_OUT = watcher.SIGNED_OUT
TRY_AGAIN_LATER = 1013
CLOSE_CODES = {"signed_out": SIGNED_OUT, "not_found": 4404, "too_many_sockets": 4429}
UNAVAILABLE_SECONDS = 2.0


class ConversationConsumer(AsyncWebsocketConsumer):
    client: commands.Client | None = None
    socket: watcher.Socket | None = None

    async def connect(self) -> None:
        wants_json = JSON_PROTOCOL in self.scope["subprotocols"]
        # A page can read the reason from a close code only after the handshake.
        await self.accept(JSON_PROTOCOL if wants_json else None)
        self.view = commands.JsonView() if wants_json else commands.HtmlView()
        self.language = languages.of_scope(self.scope)
        # What is rendered first is sent first: a frame says what has changed since, and
        # the watcher's syncs come beside the events.
        self.order = asyncio.Lock()
        try:
            client = await database_sync_to_async(commands.Client.open)(self.scope)
            await self._enter(client)
            if not wants_json:
                await self._answer(events.Sync())
        except CommandError as error:
            metrics.REFUSALS.labels(error.code).inc()
            await self.close(CLOSE_CODES[error.code])
        except TROUBLE as error:
            _log(error)
            await self.close(TRY_AGAIN_LATER)

    async def _enter(self, client: commands.Client) -> None:
        """Take a place among the person's sockets, and hear of the conversation."""
        self.client = client
        self.socket = watcher.Socket(
            holder=client.holder,
            conversation_id=client.conversation_id,
            view=self.view,
            join=self._join,
            sync=self._catch_up,
            close=self.close,
            stands=client.stands,
        )
        here = watcher.here()
        here.add(self.socket)
        try:
            count = here.count(client.user_id)
            await database_sync_to_async(client.enter)(count)
        except BaseException:
            self.client = None
            here.remove(self.socket)
            raise
        self.socket.joined = await self._join()

    async def disconnect(self, code: int) -> None:
        if self.client is None:
            return
        here = watcher.here()
        here.remove(self.socket)
        await layer.leave(self.client.group, self.channel_name)
        try:
            count = here.count(self.client.user_id)
            await database_sync_to_async(self.client.leave)(count)
        except TROUBLE as error:
            _log(error)  # the next renewal puts it right

    async def _join(self) -> bool:
        return await layer.join(self.client.group, self.channel_name)

    async def receive(
        self, text_data: str | None = None, bytes_data: bytes | None = None
    ) -> None:
        if self.client is None:
            return
        with translation.override(self.language):
            await self._receive(text_data)

    async def _receive(self, text: str | None) -> None:
        command = None
        try:
            command = events.parse(text)
            await self._answer(command)
        except CommandError as error:
            await self._refuse(events.Error.of(error))
        except TROUBLE as error:
            _log(error)
            await self._refuse(_unavailable(command))

    async def _refuse(self, error: events.Error) -> None:
        metrics.REFUSALS.labels(error.code).inc()
        for text in self.view.error(error):
            await self.send(text_data=text)

    async def _answer(self, command: events.Command) -> None:
        done = await database_sync_to_async(self.client.perform)(command)
        if done is commands.SIGNED_OUT:
            await self.close(SIGNED_OUT)
            return
        for event in done.answers:
            await self._send(self.view.answer, self.client, event)
        if isinstance(command, events.Sync):
            await self._catch_up()
        conversation_id = self.client.conversation_id
        told = [await events.publish(conversation_id, e) for e in done.published]
        if done.stopping:
            await events.hint_stop(done.stopping)
        if done.has_work:
            runner.start(conversation_id)
        if not all(told) or (told and not self.socket.joined):
            # Nobody else will tell this page what it has just asked for.
            await self._catch_up()

    async def dispatch(self, message: dict[str, Any]) -> None:
        # Channels visits the one database thread before every event; what is only
        # passed on must not wait there for somebody's query.
        if message["type"] == "chat.event":
            await self.chat_event(message)
        else:
            await super().dispatch(message)

    async def chat_event(self, message: dict[str, Any]) -> None:
        self.socket.hear()
        try:
            await self._pass_on(events.from_layer(message))
        except AWAY as error:
            _log(error)
            self.socket.stands = None  # missed: to be read when the database is back

    async def _pass_on(self, event: events.Event) -> None:
        if not isinstance(event, events.Frame):
            await self._send(self.view.event, self.client, event)
            return
        async with self.order:
            text = self.view.frame(event)
            if text:
                metrics.FRAMES.inc()
                await self.send(text_data=text)
        if text is None:
            await self._catch_up()

    async def _catch_up(self) -> None:
        await self._send(self.view.sync, self.client)

    async def _send(self, render: Callable[..., list[str]], *args: Any) -> None:
        # Not only a command renders: events and the watcher come by other ways.
        async with self.order:
            with translation.override(self.language):
                texts = await database_sync_to_async(render)(*args)
            for text in texts:
                await self.send(text_data=text)


def _unavailable(command: events.Command | None) -> events.Error:
    known = events.client_id_of({"client_id": getattr(command, "client_id", None)})
    return events.Error(
        "unavailable",
        _("The database does not answer right now. Nothing is lost; try again."),
        known,
        UNAVAILABLE_SECONDS,
    )


def _log(error: Exception) -> None:
    if is_away(error):
        logger.warning("database away: %s", name_of(error))
    else:
        logger.error("database failed", exc_info=error)
