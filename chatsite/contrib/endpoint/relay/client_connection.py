"""The connection to a client: its body, its presence and its answer.

The answer is written no faster than the client reads it.
"""

import asyncio
import zlib
from collections.abc import Coroutine, Mapping
from contextlib import aclosing
from typing import Any, TypeVar

from zstandard import ZstdDecompressor, ZstdError

from chatsite.contrib.endpoint.addresses import MAX_BODY_BYTES
from chatsite.contrib.endpoint.apis.errors import ApiError, refuse_body
from chatsite.live.outbox import TRANSPORT

from .provider_answer import ProviderAnswer

T = TypeVar("T")
# zstd bytes unpacked at once: four bytes can be a block of 128 KB.
ZSTD_BYTES = 256


class GoneError(Exception):
    """Raised if the client hung up or stopped reading."""


class Connection:
    """One request of a client and its answer, over ASGI."""

    def __init__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        self._receive, self._send = receive, send
        # None with a server whose send() waits by itself.
        self._transport = (scope.get("extensions") or {}).get(TRANSPORT)
        if self._transport:
            self._transport.takes_long = True
        # Ends when the client hangs up.
        self.gone: asyncio.Task[None] | None = None
        self.is_answered = False

    async def read_body(self, headers: Mapping[str, str]) -> bytes:
        """Read the body.

        Raise ApiError for one that is too large, and GoneError.
        """
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length[:12]) > MAX_BODY_BYTES:
            raise refuse_body(MAX_BODY_BYTES)
        chunks, size, has_more = [], 0, True
        while has_more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise GoneError
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
            if size > MAX_BODY_BYTES:
                raise refuse_body(MAX_BODY_BYTES)
            has_more = message.get("more_body", False)
        self.gone = asyncio.create_task(self._wait_until_gone())
        return b"".join(chunks)

    async def _wait_until_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def run_unless_gone(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of the work, or cancel it and raise GoneError."""
        task = asyncio.create_task(work)
        try:
            await self.wait_for_any({task})
            return task.result()
        finally:
            task.cancel()

    async def wait_for_any(self, tasks: set[asyncio.Task[Any]]) -> None:
        """Wait until one of the tasks ends, or raise GoneError."""
        awaited = tasks | ({self.gone} if self.gone else set())
        await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
        if not any(task.done() for task in tasks):
            raise GoneError

    async def start_response(self, status: int, headers: Mapping[str, str]) -> None:
        self.is_answered = True
        pairs = [
            (name.encode(), text.encode("latin-1")) for name, text in headers.items()
        ]
        start = {"type": "http.response.start", "status": status, "headers": pairs}
        await self._send(start)

    async def write_chunk(self, chunk: bytes) -> None:
        """Write a chunk and wait until it is sent, or raise GoneError."""
        message = {"type": "http.response.body", "body": chunk, "more_body": True}
        await self._send(message)
        if self._transport and not await self._transport.drained():
            self.cut_off()
            raise GoneError

    async def finish_response(self) -> None:
        await self._send({"type": "http.response.body", "body": b""})

    async def pass_on(self, answer: ProviderAnswer, own: Mapping[str, str]) -> None:
        async with aclosing(answer.chunks) as chunks:
            await self.start_response(answer.status, {**answer.headers, **own})
            async for chunk in chunks:
                await self.write_chunk(chunk)
        await self.finish_response()

    def cut_off(self) -> None:
        if self._transport and self.is_answered:
            self._transport.cut_off()

    def close(self) -> None:
        if self.gone:
            self.gone.cancel()


def unpack_body(raw: bytes, encoding: str) -> bytes:
    """Return the unpacked body.

    Raise ApiError for another encoding, for a body that is cut off, and for one that
    is larger than a body may be, of which no more is unpacked.
    """
    unpack = UNPACKERS.get(encoding)
    if encoding == "identity":
        return raw
    if unpack is None:
        detail = (
            f"A body in the encoding {encoding[:40]!r} can't be read here: send it in "
            "gzip or zstd, or unpacked."
        )
        raise ApiError(415, "encoding", detail)
    body, is_whole = unpack(raw)
    if len(body) > MAX_BODY_BYTES:
        raise refuse_body(MAX_BODY_BYTES)
    if not is_whole:
        detail = (
            f"The body says that it is {encoding}, and is no whole {encoding} file."
        )
        raise ApiError(400, "bad_request", detail)
    return body


def _unpack_gzip(raw: bytes) -> tuple[bytes, bool]:
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        body = unpacker.decompress(raw, MAX_BODY_BYTES + 1)
    except zlib.error:
        return b"", False
    return body, unpacker.eof and not unpacker.unused_data


def _unpack_zstd(raw: bytes) -> tuple[bytes, bool]:
    unpacker = ZstdDecompressor(max_window_size=MAX_BODY_BYTES).decompressobj()
    body, rest = bytearray(), memoryview(raw)
    try:
        while rest and not unpacker.eof and len(body) <= MAX_BODY_BYTES:
            body += unpacker.decompress(rest[:ZSTD_BYTES])
            rest = rest[ZSTD_BYTES:]
    except ZstdError:
        return b"", False
    return bytes(body), unpacker.eof and not rest and not unpacker.unused_data


UNPACKERS = {"gzip": _unpack_gzip, "x-gzip": _unpack_gzip, "zstd": _unpack_zstd}
