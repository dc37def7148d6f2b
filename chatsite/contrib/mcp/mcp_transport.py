"""Transports to MCP servers: programs over standard streams, and HTTP.

No message is read that is longer than a limit, so no server can fill the memory of this
process. Needs the protocol's SDK, so only mcp_servers.py imports it, where that is
installed.
"""

import asyncio
import logging
import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from fastmcp.client.transports import (
    ClientTransport,
    SSETransport,
    StreamableHttpTransport,
)
from fastmcp.client.transports.base import TransportOptions
from mcp.client.session import ClientSession
from mcp.client.stdio import get_default_environment
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import (
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    ListToolsRequest,
    ListToolsResult,
    PaginatedRequestParams,
    Tool,
    methods,
)
from mcp_types.jsonrpc import jsonrpc_message_adapter
from pydantic import ValidationError

from . import mcp_tasks

logger = logging.getLogger(__name__)

# For a program to end by itself, and then after it was asked to.
EXIT_SECONDS = 2.0
HTTP_SECONDS, STREAM_SECONDS = 30.0, 300.0
PLAIN = "identity"
# Of a session that has negotiated no version.
LATEST = "2025-11-25"
EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")


class _Limits:
    """The limits of reading over one connection, and whether it is over.

    `reason` is set if too much was sent.
    """

    def __init__(self, limit: int) -> None:
        self.limit, self.reason = limit, ""
        self.over = asyncio.Event()

    def refuse(self) -> None:
        self.reason = f"a message of more than {self.limit:,} bytes"
        logger.warning("An MCP server is left: it sent %s.", self.reason)
        self.over.set()

    def make_client(self, **options: Any) -> httpx2.AsyncClient:
        """Return a client without compression, so that little data stays little."""
        headers = {**(options.pop("headers", None) or {}), "Accept-Encoding": PLAIN}
        timeout = options.pop("timeout", None)
        options.pop("follow_redirects", None)
        return httpx2.AsyncClient(
            headers=headers,
            timeout=timeout or httpx2.Timeout(HTTP_SECONDS, read=STREAM_SECONDS),
            event_hooks={"response": [self._bound]},
            **options,
        )

    async def _bound(self, response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", PLAIN) != PLAIN:
            await response.aclose()
            raise httpx2.DecodingError("The answer is packed.")
        response.stream = _BoundedStream(response, self)


class _BoundedStream(httpx2.AsyncByteStream):
    """The bytes of an answer, up to a limit; of a stream, those of each event."""

    def __init__(self, response: httpx2.Response, limits: _Limits) -> None:
        self.stream, self.limits = response.stream, limits
        kind = response.headers.get("content-type", "")
        self.is_events = kind.lower().startswith("text/event-stream")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, end = 0, b""
        async for part in self.stream:
            size += len(part)
            if self.is_events:
                end += part
                ends = [match.end() for match in EVENT_END.finditer(end)]
                size = len(end) - ends[-1] if ends else size
                end = end[-3:]
            if size > self.limits.limit:
                self.limits.refuse()
                raise httpx2.StreamError(self.limits.reason)
            yield part

    async def aclose(self) -> None:
        await self.stream.aclose()


class Session(ClientSession):
    """A session that accepts sound tools beside others, and raw results.

    The SDK refuses a whole result for one part that it does not know, or for an output
    that does not match its schema.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # Why tools of the list were not taken, by their names.
        self.malformed: dict[str, str] = {}

    async def list_tools(
        self, *, params: PaginatedRequestParams | None = None
    ) -> ListToolsResult:
        """Return the tools that follow the protocol.

        The SDK would refuse all of them for one that does not.
        """
        raw = await self._send_raw(ListToolsRequest(params=params))
        listed, is_first = raw.get("tools"), params is None or params.cursor is None
        if is_first:
            self.malformed = {}
        tools = [each for each in listed or () if self._is_sound(each, raw)]
        known = {"tools": tools, "nextCursor": raw.get("nextCursor")}
        result = ListToolsResult.model_validate(known, by_name=False)
        is_whole = is_first and result.next_cursor is None
        return self._absorb_tool_listing(result, complete=is_whole)

    async def _send_raw(self, request: Any, **how: Any) -> dict[str, Any]:
        """Return the result as it comes, unchecked."""
        data = request.model_dump(by_alias=True, mode="json", exclude_none=True)
        self._stamp(data, how)
        return await self._dispatcher.send_raw_request(
            data["method"], data.get("params"), how
        )

    def _is_sound(self, tool: Any, raw: dict[str, Any]) -> bool:
        version = self._negotiated_version or LATEST
        try:
            methods.validate_server_result(
                "tools/list", version, {**raw, "tools": [tool]}
            )
            Tool.model_validate(tool, by_name=False)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            place = ".".join(str(step) for step in first["loc"][2:])
            name = tool.get("name") if isinstance(tool, dict) else ""
            self.malformed[str(name)[:100]] = f"{place}: {first['msg']}"[:200]
            return False
        except KeyError:
            # The version has no rule for it.
            return True
        return True

    async def call_tool(
        self, name: str, arguments: dict[str, Any] | None = None, **options: Any
    ) -> CallToolResult:
        """Return the result, with `content` as JSON.

        Raises TaskBegunError where the call has become a task.
        """
        params = CallToolRequestParams(
            name=name, arguments=arguments, _meta=options.get("meta")
        )
        on_progress = options.get("progress_callback")
        raw = await self._send_raw(
            CallToolRequest(params=params), on_progress=on_progress
        )
        if raw.get("resultType") == "task":
            raise mcp_tasks.TaskBegunError(mcp_tasks.BegunTask.model_validate(raw))
        return CallToolResult.model_construct(
            content=raw, structured_content=None, is_error=False, meta=None
        )


class Program(ClientTransport):
    """A program, a line for each message."""

    def __init__(self, config: dict[str, Any], limit: int) -> None:
        self.config, self.limits = config, _Limits(limit)

    @asynccontextmanager
    async def connect_session(
        self, *, transport_options: TransportOptions | None = None, **options: Any
    ) -> AsyncIterator[ClientSession]:
        process = await self._start()
        to_session, received = anyio.create_memory_object_stream[Any](0)
        sent, from_session = anyio.create_memory_object_stream[SessionMessage](0)
        tasks = [
            asyncio.create_task(self._read(process, to_session)),
            asyncio.create_task(_write(process, from_session)),
        ]
        try:
            async with Session(received, sent, **options) as session:
                yield session
        finally:
            with anyio.CancelScope(shield=True):
                await _end(process)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _start(self) -> asyncio.subprocess.Process:
        config = self.config
        with _open_log(config) as log:
            # It gets no variable of the site's but PATH, HOME and the like.
            return await asyncio.create_subprocess_exec(
                config["command"],
                *config.get("args", []),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=get_default_environment() | (config.get("env") or {}),
                cwd=config.get("cwd"),
                start_new_session=True,
                # Of what is read ahead; twice as much is the most that is in memory.
                limit=self.limits.limit,
            )

    async def _read(
        self, process: asyncio.subprocess.Process, to: MemoryObjectSendStream[Any]
    ) -> None:
        try:
            async with to:
                while line := await process.stdout.readuntil(b"\n"):
                    await to.send(_parse(line))
        except asyncio.LimitOverrunError:
            self.limits.refuse()
            _signal(process, signal.SIGKILL)
        except (asyncio.IncompleteReadError, OSError, anyio.BrokenResourceError):
            """It has ended, or is not listened to any more."""
        finally:
            self.limits.over.set()


def _open_log(config: dict[str, Any]) -> BinaryIO:
    return Path(config.get("log_file", os.devnull)).open("ab")


async def _write(
    process: asyncio.subprocess.Process,
    messages: MemoryObjectReceiveStream[SessionMessage],
) -> None:
    with suppress(OSError):
        async with messages:
            async for each in messages:
                text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(text.encode() + b"\n")
                await process.stdin.drain()


def _parse(line: bytes) -> SessionMessage | Exception:
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError as error:
        return error
    return SessionMessage(message)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the program, with all that it has started.

    As the protocol has it: close its input, wait, ask, end it.
    """
    process.stdin.close()
    for number in (None, signal.SIGTERM, signal.SIGKILL):
        if number:
            _signal(process, number)
        with suppress(TimeoutError):
            async with asyncio.timeout(EXIT_SECONDS):
                # wait() would wait for its pipes, too, which others can hold.
                while process.returncode is None:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        if process.returncode is not None:
            break
    _signal(process, signal.SIGKILL)
    # Not closed where another program still holds the other end of its pipes.
    process._transport.close()


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """Send the signal to the program and to what it has started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


class Http(StreamableHttpTransport):
    """An address that speaks Streamable HTTP."""

    def __init__(self, config: dict[str, Any], limit: int) -> None:
        super().__init__(**_address(config))
        self.limits = _Limits(limit)

    @asynccontextmanager
    async def connect_session(
        self, *, transport_options: TransportOptions | None = None, **options: Any
    ) -> AsyncIterator[ClientSession]:
        async with (
            self.limits.make_client(headers=self.headers, auth=self.auth) as client,
            streamable_http_client(
                self.url, http_client=client, max_sse_event_size=None
            ) as (received, sent),
            Session(received, sent, **options) as session,
        ):
            yield session


class Sse(SSETransport):
    """An address that speaks the HTTP of 2024, with events."""

    def __init__(self, config: dict[str, Any], limit: int) -> None:
        self.limits = _Limits(limit)
        make = self.limits.make_client
        super().__init__(**_address(config), httpx_client_factory=make)

    def connect_session(
        self, *, transport_options: TransportOptions | None = None, **options: Any
    ) -> Any:
        chosen = replace(transport_options or TransportOptions(), session_class=Session)
        return super().connect_session(transport_options=chosen, **options)


def _address(config: dict[str, Any]) -> dict[str, Any]:
    return {name: config.get(name) for name in ("url", "headers", "auth")}
