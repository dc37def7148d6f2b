"""The connection to the provider.

Its address and key are the operator's, whatever a client sends.
"""

import asyncio
import io
import logging
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import aiohttp
from django.conf import settings
from yarl import URL

from chatsite.contrib.endpoint.apis.errors import ApiError
from chatsite.llm.providers import CONNECT_TIMEOUT, close_at_loop_end
from chatsite.llm.transport import MAX_HEADER_BYTES

logger = logging.getLogger(__name__)
# A provider's address, and the site's headers for it.
Upstream = tuple[str, Mapping[str, str]]

# The client's headers that are passed on, and the provider's that are passed back.
ASKED = frozenset(
    {
        *("accept", "content-type", "user-agent", "idempotency-key", "openai-beta"),
        *("anthropic-version", "anthropic-beta"),
    }
)
ANSWERED = frozenset(
    {
        *("content-type", "content-encoding", "retry-after", "retry-after-ms"),
        *("x-request-id", "request-id", "openai-version", "openai-processing-ms"),
        *("openai-model", "x-should-retry"),
    }
)
ANSWERED_STARTS = ("x-ratelimit-", "anthropic-ratelimit-")
UNREACHABLE = (
    "The site can't reach the model's provider right now. Try again in a moment."
)


# One session for each event loop, closed with it.
_sessions: WeakKeyDictionary[Any, aiohttp.ClientSession] = WeakKeyDictionary()


def _find_session() -> aiohttp.ClientSession:
    loop = asyncio.get_running_loop()
    session = _sessions.get(loop)
    if session is None:
        session = _sessions[loop] = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            # Bytes are passed back unchanged.
            auto_decompress=False,
            trust_env=True,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT),
            max_line_size=MAX_HEADER_BYTES,
            max_field_size=MAX_HEADER_BYTES,
            skip_auto_headers=("user-agent", "accept", "content-type"),
        )
        close_at_loop_end(session.close)
    return session


async def send_upstream(
    method: str,
    upstream: Upstream,
    path: str,
    headers: Mapping[str, str],
    raw: bytes | None = None,
    seconds: float | None = None,
) -> aiohttp.ClientResponse:
    """Return the provider's answer, with nothing read but its headers.

    It has to begin within `seconds`, or MODEL_IDLE_TIMEOUT. Raise ApiError.
    """
    base, own = upstream
    base, _, query = base.partition("?")
    address = URL(f"{base.rstrip('/')}{path}").update_query(query)
    sent = {name: text for name, text in headers.items() if name in ASKED}
    # A packed answer could not be parsed while it is relayed.
    sent |= {"accept-encoding": "identity", **own}
    if address.user:
        auth = aiohttp.BasicAuth(address.user, address.password or "")
        sent["authorization"] = auth.encode()
        address = address.with_user(None)
    try:
        async with asyncio.timeout(seconds or settings.MODEL_IDLE_TIMEOUT):
            return await _find_session().request(
                method,
                address,
                data=None if raw is None else io.BytesIO(raw),
                headers=sent,
                allow_redirects=False,
            )
    except TimeoutError:
        detail = "The model took too long to answer. Try again."
        raise ApiError(504, "timeout", detail) from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        logger.info("provider unreachable: %s", type(error).__name__)
        raise ApiError(502, "unavailable", UNREACHABLE) from None


def select_headers(response: aiohttp.ClientResponse) -> dict[str, str]:
    """Return the provider's headers that a client gets."""
    return {
        name.lower(): text
        for name, text in response.headers.items()
        if name.lower() in ANSWERED or name.lower().startswith(ANSWERED_STARTS)
    }
