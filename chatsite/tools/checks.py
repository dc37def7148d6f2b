"""Checks of the settings that name tools."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error, register

from . import registry
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
    return messages
