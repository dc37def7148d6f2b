"""Where clients find the endpoint, and how large their requests may be."""

from django.conf import settings
from django.http import HttpRequest

START = "/v1/"
MCP = "/mcp"
MAX_BODY_BYTES = 32 * 1024 * 1024
# Of one request to the MCP server: an id, numbers, the words of a search.
MAX_MCP_BYTES = 64 * 1024


def base_address(request: HttpRequest) -> str:
    """What a client is given as its base URL."""
    return request.build_absolute_uri(START.rstrip("/"))


def mcp_address(request: HttpRequest) -> str:
    """Where agents read; "" = they can't here."""
    return request.build_absolute_uri(MCP) if settings.MCP_SERVER_ENABLED else ""


MODELS = "/v1/models"
