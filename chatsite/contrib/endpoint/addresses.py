"""The addresses of the endpoint, and the size limits of its requests."""

from django.conf import settings
from django.http import HttpRequest

START = "/v1/"
MCP = "/mcp"
MAX_BODY_BYTES = 32 * 1024 * 1024
# One request to the MCP server: an id, numbers, the words of a search.
MAX_MCP_BYTES = 64 * 1024


def base_address(request: HttpRequest) -> str:
    """Return the base URL for clients."""
    return request.build_absolute_uri(START.rstrip("/"))


def mcp_address(request: HttpRequest) -> str:
    """Return the address of the MCP server; "" = it is off."""
    return request.build_absolute_uri(MCP) if settings.MCP_SERVER_ENABLED else ""


MODELS = "/v1/models"
