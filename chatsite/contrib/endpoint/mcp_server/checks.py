"""Checks of the settings of the MCP server."""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register


@register()
def check_mcp_server(**kwargs: Any) -> Iterator[CheckMessage]:
    if settings.MCP_SERVER_ENABLED and find_spec("mcp") is None:
        yield Error(
            "MCP_SERVER_ENABLED: the library of the protocol is missing.",
            hint="pip install --requirement requirements/mcp.lock",
            id="chat.E009",
        )
