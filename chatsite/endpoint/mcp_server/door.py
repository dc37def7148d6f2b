"""Who may ask the MCP server, from where and how often. The library of the protocol is
loaded for the first one who may.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from django.conf import settings

from chatsite.endpoint.access.reading import check_may_read
from chatsite.endpoint.exchange import leave_place, site_address, take_place
from chatsite.endpoint.models import ApiKey
from chatsite.endpoint.relay.client import Client
from chatsite.endpoint.wires.errors import WireError
from chatsite.live.origins import is_site_origin

# What may be used at once, in seconds of the pace.
BURST = 60.0
# The people heard last; one who was forgotten begins again.
MOST_PEOPLE = 10_000
# For each person the time at which their last request would be on time. The event loop
# alone reads and writes it.
_due: OrderedDict[int, float] = OrderedDict()


async def answer_mcp(
    key: ApiKey,
    scope: dict[str, Any],
    headers: Mapping[str, str],
    receive: Any,
    send: Any,
) -> None:
    """Raises WireError as long as nothing was answered."""
    check_may_read(key)
    if "origin" in headers and not is_site_origin(scope):
        raise WireError(403, "bad_origin", "Pages of other sites may not read here.")
    keep_pace(key.owner_id)
    take_place(key.owner_id)
    client = Client(scope, receive, send)
    try:
        serving = await _load_protocol()
        await serving.serve(key, site_address(scope, headers), scope, receive, client)
    finally:
        leave_place(key.owner_id)
        client.close()


async def _load_protocol() -> ModuleType:
    """In a thread: the first time takes seconds, in which replies go on."""
    try:
        return await asyncio.to_thread(import_module, f"{__package__}.serving")
    except ImportError:
        detail = "This site lacks a library. See MCP_SERVER_ENABLED in its settings."
        raise WireError(503, "unavailable", detail) from None


def keep_pace(owner_id: int) -> None:
    """Count a request in this process. Raises WireError for one too many, and then it
    is not counted."""
    limit = settings.MCP_REQUESTS_PER_MINUTE
    if limit <= 0:
        return
    now = time.monotonic()
    due = max(_due.get(owner_id, now), now) + 60 / limit
    # Not `due - now > BURST`: rounded, 60 s from now can be more than 60 s.
    if due > now + BURST:
        detail = (
            f"You may ask {limit:,} times a minute. Wait, and ask for more at once."
        )
        raise WireError(429, "rate_limited", detail, retry_after=due - now - BURST)
    _due[owner_id] = due
    _due.move_to_end(owner_id)
    while len(_due) > MOST_PEOPLE:
        _due.popitem(last=False)
