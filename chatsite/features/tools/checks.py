"""Checks of the settings that name tools."""

from collections.abc import Iterator, Sequence
from shutil import which
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

from . import registry
from .mcp import mcp_config
from .mcp import mcp_servers as mcp


@register()
def check_tools(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[CheckMessage]:
    messages: list[CheckMessage] = [
        Error(
            f"TOOLS: {problem}.",
            hint="Each is the dotted path of a function with a docstring or of a "
            "LangChain tool.",
            id="chat.E004",
        )
        for problem in registry.problems()
    ]
    if problem := mcp.problem():
        hint = 'It is a JSON file: {"mcpServers": {"name": {"command": …}}}.'
        messages.append(Error(f"MCP_SERVERS: {problem}.", hint=hint, id="chat.E005"))
    return [*messages, *_check_programs(), *_check_defaults()]


def _check_programs() -> Iterator[CheckMessage]:
    for server in mcp_config.servers():
        program = str(server.config.get("command", ""))
        if program and not which(program):
            yield Warning(
                f"MCP_SERVERS: {server.name!r} has the command {program!r}, which is "
                "no program of this machine, so its tools are missing.",
                hint="Install it, or give its whole path.",
                id="chat.W009",
            )


def _check_defaults() -> Iterator[CheckMessage]:
    """Tools of servers have their names from them, and may not be known yet."""
    servers = tuple(f"{server.name}_" for server in mcp_config.servers())
    for name in registry.missing(settings.DEFAULT_TOOLS):
        if not name.startswith(servers):
            known = ", ".join(sorted(registry.available()))
            yield Warning(
                f"DEFAULT_TOOLS has {name!r}, which is no tool of the site.",
                hint=f"Those that there are: {known}.",
                id="chat.W010",
            )
