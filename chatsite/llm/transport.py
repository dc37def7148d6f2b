"""The connection to a model's server: openai's client over aiohttp.

aiohttp keeps what comes until it is read; this module makes it send what the same
client sends over httpx.
"""

import base64
from collections.abc import AsyncIterator
from typing import Any, Self

import aiohttp
import httpx2
import openai
from yarl import URL

# Only the beginning of an error is read, and nothing of a redirect.
MAX_ERROR_BYTES = 1_000_000
# A few bytes of those can become very many.
MAX_PACKED_BYTES = 50_000
# As long as httpx takes a header; gateways send long ones.
MAX_HEADER_BYTES = 100_000


class BoundedClient(openai.DefaultAioHttpClient):
    def _init_transport(self, *args: Any, **options: Any) -> httpx2.AsyncBaseTransport:
        return _Transport(super()._init_transport(*args, **options))

    def _init_proxy_transport(
        self, proxy: httpx2.Proxy, *args: Any, **options: Any
    ) -> httpx2.AsyncBaseTransport:
        # aiohttp has deprecated a password in an argument of its own.
        plain = httpx2.Proxy(proxy.url, headers=proxy.headers)
        inner = super()._init_proxy_transport(plain, *args, **options)
        return _Transport(inner, proxy.raw_auth)


class _Transport(httpx2.AsyncBaseTransport):
    def __init__(
        self, inner: Any, proxy_auth: tuple[bytes, bytes] | None = None
    ) -> None:
        self._inner = inner
        self._session: _Session | None = None
        self._proxy_headers: dict[str, str] = {}
        if proxy_auth:
            pair = base64.b64encode(b":".join(proxy_auth)).decode()
            self._proxy_headers["Proxy-Authorization"] = f"Basic {pair}"
        inner.client = self._open

    def _open(self) -> "_Session":
        # The first request opens it, on the event loop that it belongs to.
        if self._session is None:
            self._session = _Session(self._inner, self._proxy_headers)
        return self._session

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        # That of a redirect is a stream, which would be sent without its length.
        await request.aread()
        response = await self._inner.handle_async_request(request)
        if response.status_code >= 300:
            is_packed = "content-encoding" in response.headers
            most = MAX_PACKED_BYTES if is_packed else MAX_ERROR_BYTES
            response.stream = _BoundedStream(response.stream, most)
        return response

    async def aclose(self) -> None:
        if self._session:
            await self._session.close()


class _Session:
    """aiohttp's session, which gets a request as httpx would send it."""

    def __init__(self, inner: Any, proxy_headers: dict[str, str]) -> None:
        self._proxy_headers = proxy_headers
        connector = aiohttp.TCPConnector(
            ssl=inner.ssl_context,
            limit=inner.limits.max_connections or 0,
            keepalive_timeout=inner.limits.keepalive_expiry,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            # The client has its own.
            cookie_jar=aiohttp.DummyCookieJar(),
            max_line_size=MAX_HEADER_BYTES,
            max_field_size=MAX_HEADER_BYTES,
        )

    def __call__(self) -> Self:
        """Return itself: the transport calls its session before each request."""
        return self

    def request(
        self,
        *,
        url: str,
        headers: httpx2.Headers,
        proxy_headers: httpx2.Headers | None,
        **options: Any,
    ) -> Any:
        # The client has made a header of a password in the address.
        address = URL(url, encoded=True).with_user(None)
        if address.scheme == "https":
            to_proxy = {**(proxy_headers or {}), **self._proxy_headers}
        else:
            headers, to_proxy = headers.copy(), dict(proxy_headers or {})
            headers.update(self._proxy_headers)
        return self._session.request(
            url=address, headers=headers, proxy_headers=to_proxy, **options
        )

    async def close(self) -> None:
        await self._session.close()


class _BoundedStream(httpx2.AsyncByteStream):
    """A body without what follows its first bytes."""

    def __init__(self, body: Any, size: int) -> None:
        self._body = body
        self._size = size

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._size
        async for chunk in self._body:
            yield chunk[:left]
            left -= len(chunk)
            if left <= 0:
                return

    async def aclose(self) -> None:
        await self._body.aclose()
