"""HTTP requests for pages and search results, with limits.

Time, bytes and redirects are limited: too large or too slow answers are refused as soon
as that is known.
"""

import asyncio
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import aiohttp
from django.conf import settings
from langchain_core.tools import ToolException
from yarl import URL

from chatsite.release import find_version

from .address_guard import ClosedAddressError, make_connector

MAX_REDIRECTS = 5
REDIRECTS = {301, 302, 303, 307, 308}
HEADERS = {
    "User-Agent": f"Windowpane/{find_version()}",
    "Accept": "text/html,application/xhtml+xml,text/*;q=0.9,*/*;q=0.5",
    "Accept-Encoding": "gzip, identity",
}
# Window bits of zlib that read gzip.
GZIP = 31


class FetchedPage(NamedTuple):
    """A response, and the address it came from in the end."""

    address: str
    media_type: str
    charset: str
    data: bytes


class FetchError(ToolException):
    """The reason for a failure, as a sentence for the model and the card."""


async def fetch_page(address: str) -> FetchedPage:
    """Return the page at an address of the web. Raises FetchError."""
    async with _open_session(make_connector()) as session:
        for _ in range(MAX_REDIRECTS + 1):
            url = parse_page_address(address)
            async with session.get(url, allow_redirects=False) as response:
                target = response.headers.get("Location")
                if response.status in REDIRECTS and target:
                    address = _join(url, target)
                    continue
                _check_status(response)
                charset = response.charset or ""
                data = await _read_whole_body(response)
                return FetchedPage(str(url), response.content_type, charset, data)
    raise FetchError(f"The page leads on more than {MAX_REDIRECTS} times.")


async def ask_engine(url: URL) -> bytes:
    """Return the answer of the operator's search engine, without redirects."""
    async with (
        _open_session(make_connector(is_open=True)) as session,
        session.get(url, allow_redirects=False) as response,
    ):
        _check_status(response)
        return await _read_whole_body(response)


@asynccontextmanager
async def _open_session(
    connector: aiohttp.TCPConnector,
) -> AsyncIterator[aiohttp.ClientSession]:
    seconds = settings.WEB_SECONDS
    try:
        async with (
            asyncio.timeout(seconds),
            aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=HEADERS,
                auto_decompress=False,
            ) as session,
        ):
            yield session
    except TimeoutError:
        raise FetchError(f"No answer came within {seconds:g} s.") from None
    except aiohttp.ClientConnectorError as error:
        if isinstance(error.os_error, ClosedAddressError):
            raise FetchError(
                "This site reads public pages only, and the address leads elsewhere."
            ) from None
        raise FetchError("The server can't be reached.") from None
    except aiohttp.InvalidURL:
        raise FetchError("The address is no address of a page.") from None
    except (aiohttp.ClientError, OSError, zlib.error):
        raise FetchError("The server broke off, or can't be reached.") from None


def parse_page_address(address: str) -> URL:
    """Return the URL as it is sent. Raises FetchError."""
    try:
        url = URL(address)
        is_page = url.scheme in ("http", "https") and url.host and url.port
    except ValueError:
        is_page = False
    if not is_page:
        raise FetchError("Only addresses that begin with http:// or https:// are read.")
    return url.with_user(None).with_fragment(None)


def _join(url: URL, target: str) -> str:
    try:
        return str(url.join(URL(target)))
    except ValueError:
        return ""


def _check_status(response: aiohttp.ClientResponse) -> None:
    if response.status != 200:
        raise FetchError(f"The server answers with {response.status} and no page.")


async def _read_whole_body(response: aiohttp.ClientResponse) -> bytes:
    """Return the unpacked body.

    Raises FetchError as soon as it is too long.
    """
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "x-gzip"):
        raise FetchError("The server has packed the page in a way that is not read.")
    unpack = zlib.decompressobj(GZIP) if "gzip" in encoding else None
    most, packed, data = settings.WEB_MAX_BYTES, 0, bytearray()
    if (response.content_length or 0) > most:
        raise _refuse_length(most)
    async for chunk in response.content.iter_any():
        packed += len(chunk)
        # A few packed bytes can become very many, and many can become none.
        data += unpack.decompress(chunk, most + 1 - len(data)) if unpack else chunk
        if max(packed, len(data)) > most:
            raise _refuse_length(most)
    return bytes(data)


def _refuse_length(most: int) -> FetchError:
    return FetchError(f"It has more than {most:,} bytes, which is too much to read.")
