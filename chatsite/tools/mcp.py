"""MCP servers as tools of the site; the only module that knows LangChain's adapter for
them, which is in beta.

Servers are the operator's: MCP_SERVERS names a file in the form that all MCP clients
read. They are spoken to in a thread with an event loop of its own, so that one that
hangs or floods takes nothing from replies.
"""

import asyncio
import atexit
import hashlib
import json
import logging
import os
import re
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Any

from django.conf import settings
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool

from .context import AnswerLostError, CallContext
from .registry import SiteTool

logger = logging.getLogger(__name__)

# A server that is slower to start has its tools from a later turn on.
READY_SECONDS = 5.0
CONNECT_SECONDS = 15.0
# Known tools are looked up again after so long, and those of a server that failed.
REFRESH_SECONDS, RETRY_SECONDS = 300.0, 30.0
CLOSE_SECONDS = 2.0

SERVER_NAME = re.compile(r"[A-Za-z0-9_-]{1,20}")
# What providers take as the name of a function.
TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
# Threads may come to the first use at once.
LOCK = threading.RLock()

MAX_TOOLS = 64  # of one server
MAX_DESCRIPTION_CHARS, MAX_SCHEMA_CHARS, MAX_LABEL_CHARS = 2_000, 20_000, 60


@dataclass
class Server:
    """One server of the file, and what is known of it."""

    name: str
    config: dict[str, Any]
    # Whether what it says about its tools is believed.
    has_hints: bool = True
    tools: tuple[SiteTool, ...] = ()
    error: str = ""
    asked_at: float | None = None
    asking: Future[None] | None = None
    adapter: Any = field(default=None, repr=False)

    @property
    def has_tasks(self) -> bool:
        """Whether calls may become tasks: any process has to find them again, and each
        has programs of its own."""
        return "url" in self.config

    @property
    def is_due(self) -> bool:
        if self.asking and not self.asking.done():
            return False
        pause = RETRY_SECONDS if self.error else REFRESH_SECONDS
        return self.asked_at is None or monotonic() - self.asked_at > pause


# What was read of each file, and why it could not be.
FILES: dict[str, tuple[list[Server], str]] = {}


def tools() -> Iterator[SiteTool]:
    """The tools of all servers that have answered so far; asks those that are due."""
    for server in servers():
        _ask_again(server)
        yield from server.tools


async def ready() -> None:
    """Wait until each server was asked once, READY_SECONDS at most."""
    waiting = [
        asyncio.wrap_future(server.asking)
        for server in servers()
        if _ask_again(server) and server.asking
    ]
    if waiting:
        await asyncio.wait(waiting, timeout=READY_SECONDS)


def servers() -> list[Server]:
    """Those of MCP_SERVERS; none while the file can't be read."""
    return _known(settings.MCP_SERVERS)[0]


def problem() -> str:
    """What is wrong with MCP_SERVERS; "" if nothing is."""
    return _known(settings.MCP_SERVERS)[1]


def _known(path: str) -> tuple[list[Server], str]:
    with LOCK:
        if path not in FILES:
            FILES[path] = _load(path)
        return FILES[path]


def _load(path: str) -> tuple[list[Server], str]:
    """The servers of a file, and why there are none."""
    if not path:
        return [], ""
    if find_spec("fastmcp") is None:
        return [], "it needs pip install --requirement requirements-mcp.txt"
    try:
        entries = json.loads(Path(path).read_text(encoding="utf-8"))["mcpServers"]
        return [_read_entry(name, dict(each)) for name, each in entries.items()], ""
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        return [], f"{path!r} can't be read: {error!r}"


def _read_entry(name: str, entry: dict[str, Any]) -> Server:
    if not SERVER_NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of 1 to 20 letters, digits, - and _")
    if ("command" in entry) == ("url" in entry):
        raise ValueError(f"{name!r} needs either a command or a url")
    return Server(name, entry, has_hints=entry.pop("hints", True) is True)


def _import_adapter() -> Any:
    """LangChain's adapter. It takes a second to import, so only the thread of servers
    does."""
    # Otherwise it writes to the terminal on its own.
    os.environ.setdefault("FASTMCP_LOG_ENABLED", "false")
    from langchain_core._api import suppress_langchain_beta_warning

    with suppress_langchain_beta_warning():
        from langchain import mcp
    return mcp.MCPAdapter


# --- The thread that servers are spoken to in


@lru_cache(maxsize=1)
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="mcp", daemon=True).start()
    atexit.register(close)
    return loop


def _run(work: Coroutine[Any, Any, Any]) -> Future[Any]:
    with LOCK:
        return asyncio.run_coroutine_threadsafe(work, _loop())


def close() -> None:
    """End the programs that were started, and forget all servers."""
    with LOCK:
        known = [server for servers, _ in FILES.values() for server in servers]
        FILES.clear()
    adapters = [server.adapter for server in known if server.adapter]

    async def close_all() -> None:
        closing = (adapter.client.close() for adapter in adapters)
        await asyncio.gather(*closing, return_exceptions=True)

    if adapters:
        with suppress(TimeoutError):
            _run(close_all()).result(CLOSE_SECONDS)


# --- Asking for tools


def _ask_again(server: Server) -> bool:
    """Start to ask a server where that is due; whether its first answer is awaited."""
    if server.is_due:
        server.asking = _run(_ask(server))
    return server.asked_at is None


async def _ask(server: Server) -> None:
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            found = await _list(server)
        server.tools = tuple(_admit(server, found))
        server.error = ""
    except Exception as error:  # noqa: BLE001
        # Whatever a server or the library does. What it offered before stays known: a
        # call says that it does not answer.
        server.error = type(error).__name__
        logger.warning("MCP server %s does not answer: %s", server.name, server.error)
    finally:
        server.asked_at = monotonic()


async def _list(server: Server) -> list[BaseTool]:
    return await _adapter_of(server).list_tools(cache_mode="bypass")


def _adapter_of(server: Server) -> Any:
    if server.adapter is None:
        server.adapter = _import_adapter()(_connect(server))
    return server.adapter


def _connect(server: Server) -> Any:
    """A client that keeps the program running between calls, answers no questions and
    drops what the server logs."""
    from fastmcp import Client
    from fastmcp.client.elicitation import ElicitResult
    from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

    from . import mcp_tasks

    async def decline(*_: Any) -> ElicitResult:
        return ElicitResult(action="decline")

    async def drop(_: Any) -> None:
        """What a server logs can be anyone's words."""

    config = server.config
    if "command" in config:
        # It gets no variable of the site's environment but PATH, HOME and the like.
        transport = StdioTransport(
            config["command"],
            config.get("args", []),
            env=config.get("env"),
            cwd=config.get("cwd"),
            log_file=Path(config.get("log_file", os.devnull)),
        )
    else:
        transport = StreamableHttpTransport(
            config["url"], headers=config.get("headers"), auth=config.get("auth")
        )
    return Client(
        transport,
        extensions=[mcp_tasks.Tasks()] if server.has_tasks else None,
        init_timeout=CONNECT_SECONDS,
        elicitation_handler=decline,
        log_handler=drop,
    )


def _admit(server: Server, found: list[BaseTool]) -> Iterator[SiteTool]:
    """Those that a request can carry, named after their server."""
    for each in found[:MAX_TOOLS]:
        try:
            yield _adapt(server, each)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            logger.warning(
                "MCP server %s: a tool is left out: %s",
                server.name,
                error if type(error) is ValueError else type(error).__name__,
            )
    if len(found) > MAX_TOOLS:
        logger.warning("MCP server %s: more than %d tools", server.name, MAX_TOOLS)


def _adapt(server: Server, offered: BaseTool) -> SiteTool:
    """A tool of the site that calls the one that was offered, as it was offered."""
    name = f"{server.name}_{offered.name}"
    schema = offered.args_schema
    if not TOOL_NAME.fullmatch(name):
        raise ValueError(f"{name[:80]!r} is no name of a function")
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise ValueError(f"{name!r} takes no object")
    if len(json.dumps(schema)) > MAX_SCHEMA_CHARS:
        raise ValueError(f"{name!r} has too long a schema")
    known = _digest(offered)

    async def call(**arguments: Any) -> Any:
        work = _run(_call(server, offered.name, known, arguments))
        return await asyncio.wrap_future(work)

    tool = StructuredTool(
        name=name,
        description=(offered.description or name)[:MAX_DESCRIPTION_CHARS],
        args_schema=schema,
        coroutine=call,
    )
    # Raises here, not in a request, what LangChain can't make of the schema.
    convert_to_openai_tool(tool)
    hints = _hints(offered) if server.has_hints else {}
    title = hints.get("title") or offered.name
    read_only = hints.get("read_only_hint") is True
    return SiteTool(
        tool,
        f"{server.name}: {title}"[:MAX_LABEL_CHARS],
        read_only=read_only,
        idempotent=hints.get("idempotent_hint") is True,
        # By the protocol, a tool that says nothing may destroy.
        needs_consent=not read_only and hints.get("destructive_hint") is not False,
        source=f"mcp:{server.name}",
        look=partial(_look, server) if server.has_tasks else None,
        cancel=partial(_cancel, server) if server.has_tasks else None,
    )


def _hints(offered: BaseTool) -> dict[str, Any]:
    found = (offered.metadata or {}).get("mcp", {}).get("tool", {})
    return found.get("annotations") or {}


def _digest(offered: BaseTool) -> str:
    """Of all that a model and a person were told of a tool."""
    parts = [offered.description, offered.args_schema, _hints(offered)]
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# --- Calling them


async def _call(
    server: Server, name: str, known: str, arguments: dict[str, Any]
) -> Any:
    """The content of the answer; Pending where the call has become a task. Raises
    ToolException where the server is away, says that the call failed or offers another
    tool under this name than it did, and AnswerLostError where it went away after the
    call was sent."""
    from . import mcp_tasks

    begun = False
    try:
        async with _adapter_of(server):
            offered = await _find_unchanged(server, name, known)
            begun = True
            request = {"type": "tool_call", "id": name, "name": name, "args": arguments}
            answer = await offered.ainvoke(request)
    except ToolException:
        raise
    except mcp_tasks.TaskBegunError as begun_task:
        if pending := mcp_tasks.to_pending(begun_task.task):
            return pending
        raise AnswerLostError("The server has named its task badly.") from None
    except Exception as error:  # noqa: BLE001
        # Whatever a server or the library does.
        server.error = type(error).__name__
        logger.warning("MCP server %s failed a call: %s", server.name, server.error)
        lost = AnswerLostError if begun else ToolException
        raise lost(f"The server {server.name} did not answer.") from None
    if answer.status == "error":
        raise ToolException(answer.text or "The tool failed.")
    return answer.content


async def _find_unchanged(server: Server, name: str, known: str) -> BaseTool:
    """The tool as it was offered. Another one under its name is not called: neither the
    model nor the person who chose or allowed it knew what it does."""
    found = await _list(server)
    for offered in found:
        if offered.name == name and _digest(offered) == known:
            return offered
    server.tools = tuple(_admit(server, found))
    raise ToolException(
        f"The server {server.name} has changed or removed this tool since it was "
        "offered. The call was not made."
    )


# --- Tasks that calls have become


async def _look(server: Server, handle: dict[str, Any], _: CallContext) -> Any:
    from .mcp_tasks import find

    return await asyncio.wrap_future(_run(_ask_for_task(server, find, handle["task"])))


async def _cancel(server: Server, handle: dict[str, Any], _: CallContext) -> None:
    from .mcp_tasks import cancel

    await asyncio.wrap_future(_run(_ask_for_task(server, cancel, handle["task"])))


async def _ask_for_task(
    server: Server, ask: Callable[[Any, str], Awaitable[Any]], task_id: str
) -> Any:
    async with _adapter_of(server) as adapter:
        return await ask(adapter.client.session, task_id)
