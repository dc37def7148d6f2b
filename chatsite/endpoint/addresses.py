"""Where clients find the endpoint."""

from django.conf import settings
from django.http import HttpRequest

START = "/v1/"
MCP = "/mcp"


def base_address(request: HttpRequest) -> str:
    """What a client is given as its base URL."""
    return request.build_absolute_uri(START.rstrip("/"))


def mcp_address(request: HttpRequest) -> str:
    """Where agents read; "" = they can't here."""
    return request.build_absolute_uri(MCP) if settings.MCP_SERVER_ENABLED else ""
