"""Connections to MCP servers, in a thread with an event loop of its own.

A server that hangs or floods does not slow down replies. Only here, and in that thread,
are the SDK and what builds on it imported: that takes a second.
"""

import asyncio
import atexit
import logging
import os
import threading
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from functools import lru_cache
from typing import Any

from django.conf import settings

from chatsite.release import find_version

from .mcp_config import FILES, HTTP, LOCK, PROGRAM, Server

logger = logging.getLogger(__name__)

CONNECT_SECONDS = 15.0
CLOSE_SECONDS = 2.0
# A server that does not say that it will tell of changes is not waited for.
LISTEN_SECONDS = 2.0
NAME = "Windowpane"


@lru_cache(maxsize=1)
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="mcp", daemon=True).start()
    atexit.register(close)
    return loop


def run(work: Coroutine[Any, Any, Any]) -> Future[Any]:
    """Run the coroutine in the thread of servers."""
    with LOCK:
        return asyncio.run_coroutine_threadsafe(work, _loop())


def close() -> None:
    """End the programs that were started, and forget all servers."""
    with LOCK:
        known = [server for servers, _ in FILES.values() for server in servers]
        FILES.clear()
    links = [server.link for server in known if server.link]

    async def close_all() -> None:
        closing = (link.close() for link in links)
        await asyncio.gather(*closing, return_exceptions=True)

    if links:
        with suppress(TimeoutError):
            run(close_all()).result(CLOSE_SECONDS)


@asynccontextmanager
async def connect(server: Server) -> AsyncIterator["ServerLink"]:
    """Open the connection to a server, or use the one that is kept."""
    if server.link is None or server.link.is_over:
        server.link = ServerLink(server)
    link = server.link
    async with link.client:
        yield link


class ServerLink:
    """A connection to one server.

    A program is kept running between calls, and so is the connection to a server that
    wants to notify of changed tools.
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        self.client = _make_client(server)
        self._has_ended = False
        self._kept: asyncio.Task[None] | None = None

    @property
    def is_over(self) -> bool:
        return self._has_ended or self.client.transport.limits.over.is_set()

    @property
    def is_kept(self) -> bool:
        return self._kept is not None and not self._kept.done()

    @property
    def takes_tasks(self) -> bool:
        """True if a call can become a task here."""
        from .mcp_tasks import TaskExtension

        known = self.client.server_capabilities
        extensions = getattr(known, "extensions", None) or {}
        return self.server.has_tasks and TaskExtension.identifier in extensions

    @property
    def reason(self) -> str:
        """The fault in the server's data that ended the connection, or ""."""
        return self.client.transport.limits.reason

    async def keep_open(self) -> None:
        """Keep the connection open, if there is a reason to."""
        tells = getattr(self.client.server_capabilities, "tools", None)
        is_wanted = self.server.kind == PROGRAM or getattr(tells, "list_changed", None)
        if is_wanted and not self.is_kept and not self.is_over:
            is_open = asyncio.Event()
            self._kept = asyncio.create_task(self._stay(is_open))
            # Before who keeps it open now lets go.
            with suppress(TimeoutError):
                await asyncio.wait_for(is_open.wait(), LISTEN_SECONDS)

    async def _stay(self, is_open: asyncio.Event) -> None:
        """Hold the connection until it breaks off.

        Calls that still use it can end.
        """
        try:
            async with self.client, asyncio.TaskGroup() as both:
                listening = both.create_task(self._listen(is_open))
                await self.client.transport.limits.over.wait()
                listening.cancel()
        except Exception as error:  # noqa: BLE001 - whatever the library does
            logger.info("MCP server %s: %s", self.server.name, type(error).__name__)
        finally:
            self._has_ended = True
            is_open.set()

    async def _listen(self, is_open: asyncio.Event) -> None:
        """Detect changed tools: since 2026, this has to be requested."""
        from mcp.client.subscriptions import ListenNotSupportedError, listen
        from mcp.shared.exceptions import MCPError

        with suppress(ListenNotSupportedError, MCPError):
            wanted = listen(self.client.session, tools_list_changed=True)
            async with wanted as changes:
                is_open.set()
                async for _ in changes:
                    self.server.expire_tools()
        is_open.set()

    async def close(self) -> None:
        """Close the connection, which is not used again."""
        self._has_ended = True
        if self._kept:
            self._kept.cancel()
            await asyncio.gather(self._kept, return_exceptions=True)
        await self.client.close()


def _make_client(server: Server) -> Any:
    """Return a client that answers no questions of the server.

    It drops the server's log. Elicitation and sampling are not offered.
    """
    # Otherwise it writes to the terminal on its own.
    os.environ.setdefault("FASTMCP_LOG_ENABLED", "false")
    from fastmcp import Client
    from mcp_types import Implementation, ToolListChangedNotification

    from . import mcp_tasks, mcp_transport

    kinds = {PROGRAM: mcp_transport.Program, HTTP: mcp_transport.Http}
    transport = kinds.get(server.kind, mcp_transport.Sse)

    async def drop(_: Any) -> None:
        """Drop a log line, which can hold the words of any user."""

    async def hear(message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            server.expire_tools()

    return Client(
        transport(server.config, settings.MCP_MESSAGE_BYTES),
        extensions=[mcp_tasks.TaskExtension()] if server.has_tasks else None,
        init_timeout=CONNECT_SECONDS,
        log_handler=drop,
        message_handler=hear,
        client_info=Implementation(name=NAME, version=find_version()),
    )
