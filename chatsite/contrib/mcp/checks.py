"""Checks of the setting that names MCP servers."""

from collections.abc import Iterator
from shutil import which
from typing import Any

from django.core.checks import CheckMessage, Error, Warning, register

from . import mcp_config


@register()
def check_mcp_servers(**kwargs: Any) -> Iterator[CheckMessage]:
    if problem := mcp_config.problem():
        hint = 'It is a JSON file: {"mcpServers": {"name": {"command": …}}}.'
        yield Error(f"MCP_SERVERS: {problem}.", hint=hint, id="chat.E005")
    for server in mcp_config.servers():
        program = str(server.config.get("command", ""))
        if program and not which(program):
            yield Warning(
                f"MCP_SERVERS: {server.name!r} has the command {program!r}, which is "
                "no program of this machine, so its tools are missing.",
                hint="Install it, or give its whole path.",
                id="chat.W009",
            )
