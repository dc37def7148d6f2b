"""The operator's file of MCP servers, which MCP_SERVERS names.

It has the form that all MCP clients read. Knows nothing of the protocol.
"""

import json
import math
import re
from concurrent.futures import Future
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from time import monotonic
from typing import TYPE_CHECKING, Any

from django.conf import settings

from chatsite.features.tools.context import SiteTool
from chatsite.strict_json import make_object

if TYPE_CHECKING:
    from .mcp_link import ServerLink

# Known tools are looked up again after so long, and those of a server that failed.
REFRESH_SECONDS, RETRY_SECONDS = 300.0, 30.0
# Of a call whose server tells how far it is, where the entry does not say.
MOST_SECONDS = 600.0
SERVER_NAME = re.compile(r"[A-Za-z0-9_-]{1,20}")
# What entries call them; without a type, a url is HTTP.
PROGRAM, HTTP, SSE = "stdio", "http", "sse"
TYPES = dict.fromkeys((HTTP, "streamable-http", "streamable_http"), HTTP)
TYPES |= {PROGRAM: PROGRAM, SSE: SSE}
# Threads may come to the first use at once.
LOCK = RLock()


@dataclass
class Server:
    """One server of the file, and what is known of it.

    has_hints: whether what it says about its tools is believed. has_instructions:
    whether models read what it says about itself. seconds: what a call may take
    without a sign of life, 0: TOOL_SECONDS; max_seconds: with signs.
    """

    name: str
    config: dict[str, Any]
    kind: str = PROGRAM
    has_hints: bool = True
    has_instructions: bool = False
    seconds: float = 0.0
    max_seconds: float = 0.0
    tools: tuple[SiteTool, ...] = ()
    instructions: str = ""
    error: str = ""
    # Of tools that can't be offered: their names, and why.
    left_out: tuple[tuple[str, str], ...] = ()
    asked_at: float | None = None
    asking: Future[None] | None = None
    link: "ServerLink | None" = field(default=None, repr=False)

    @property
    def has_tasks(self) -> bool:
        """True if calls may become tasks.

        Any process has to find them again, and each has programs of its own.
        """
        return self.kind == HTTP

    @property
    def is_due(self) -> bool:
        if self.asking and not self.asking.done():
            return False
        pause = RETRY_SECONDS if self.error else REFRESH_SECONDS
        return self.asked_at is None or monotonic() - self.asked_at > pause

    def expire_tools(self) -> None:
        """Mark the known tools as out of date."""
        if self.asked_at is not None:
            self.asked_at = -math.inf


# What was read of each file, and why it could not be.
FILES: dict[str, tuple[list[Server], str]] = {}


def servers() -> list[Server]:
    """Return the servers of MCP_SERVERS; none while the file can't be read."""
    return _known(settings.MCP_SERVERS)[0]


def problem() -> str:
    """Return what is wrong with MCP_SERVERS, or ""."""
    return _known(settings.MCP_SERVERS)[1]


def _known(path: str) -> tuple[list[Server], str]:
    with LOCK:
        if path not in FILES:
            FILES[path] = _load(path)
        return FILES[path]


def _load(path: str) -> tuple[list[Server], str]:
    """Return the servers of a file, and why there are none."""
    if not path:
        return [], ""
    if find_spec("fastmcp") is None:
        return [], "it needs pip install --requirement requirements/mcp.lock"
    try:
        text = Path(path).read_text(encoding="utf-8")
        entries = json.loads(text, object_pairs_hook=make_object)["mcpServers"]
        return [_read_entry(name, dict(each)) for name, each in entries.items()], ""
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        return [], f"{path!r} can't be read: {error!r}"


def _read_entry(name: str, entry: dict[str, Any]) -> Server:
    if not SERVER_NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of 1 to 20 letters, digits, - and _")
    if ("command" in entry) == ("url" in entry):
        raise ValueError(f"{name!r} needs either a command or a url")
    is_program = "command" in entry
    given = entry.pop("type", PROGRAM if is_program else HTTP)
    kind = TYPES.get(given) if isinstance(given, str) else None
    if kind is None or (kind == PROGRAM) != is_program:
        known = PROGRAM if is_program else f"{HTTP} or {SSE}"
        raise ValueError(f"{name!r} has the type {given!r}, expected {known}")
    seconds = _read_seconds(name, entry, "seconds")
    most = _read_seconds(name, entry, "max_seconds")
    return Server(
        name,
        entry,
        kind=kind,
        has_hints=entry.pop("hints", True) is True,
        has_instructions=entry.pop("instructions", False) is True,
        seconds=seconds,
        max_seconds=most or max(MOST_SECONDS, seconds),
    )


def _read_seconds(name: str, entry: dict[str, Any], key: str) -> float:
    """0: the entry does not say."""
    value = entry.pop(key, 0)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= 86_400:
        raise ValueError(f"{name!r} has {key} {value!r}, expected a number of seconds")
    return float(value)
