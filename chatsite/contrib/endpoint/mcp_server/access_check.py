"""The access check and rate limit of the MCP server.

The protocol's library is loaded for the first request that passes.
"""

import asyncio
from collections.abc import Mapping
from contextlib import closing
from importlib import import_module
from types import ModuleType
from typing import Any

from chatsite.contrib.endpoint.access.rate_limits import limit_request_rate
from chatsite.contrib.endpoint.access.read_scope import check_may_read
from chatsite.contrib.endpoint.apis.errors import ApiError
from chatsite.contrib.endpoint.models import ApiKey
from chatsite.contrib.endpoint.relay.client_connection import Connection
from chatsite.live.origins import is_site_origin

from ..request_handling import hold_slot, site_address


async def answer_mcp(
    key: ApiKey,
    scope: dict[str, Any],
    headers: Mapping[str, str],
    receive: Any,
    send: Any,
) -> None:
    """Answer a request.

    Raise ApiError as long as nothing was answered.
    """
    check_may_read(key)
    if "origin" in headers and not is_site_origin(scope):
        raise ApiError(403, "bad_origin", "Pages of other sites may not read here.")
    limit_request_rate(key.owner_id, "MCP_REQUESTS_PER_MINUTE")
    with hold_slot(key.owner_id), closing(Connection(scope, receive, send)) as client:
        protocol = await _load_protocol()
        site = site_address(scope, headers)
        await protocol.serve_request(key, site, scope, receive, client)


async def _load_protocol() -> ModuleType:
    """Import the protocol in a thread, as it takes seconds the first time."""
    try:
        return await asyncio.to_thread(import_module, f"{__package__}.protocol")
    except ImportError:
        detail = "This site lacks a library. See MCP_SERVER_ENABLED in its settings."
        raise ApiError(503, "unavailable", detail) from None
