"""The JSON objects in the body of a streamed reply.

They are read as many at a time as the connection has brought.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from typing import Any, TypeVar

import openai

from chatsite.fair_queue import loop_turn

T = TypeVar("T")

BOM = b"\xef\xbb\xbf"
# Of one event, or of a reply that is one document.
MAX_JSON_BYTES = 8_000_000
# Of a whole reply: several times what the longest takes with each token on its own.
MAX_BODY_BYTES = 100_000_000
DONE = "[DONE]"
# What is read before it is the turn of others: some dozen tokens.
TURN_BYTES = 4_000
# The most objects of one batch.
BATCH_OBJECTS = 200
# A connection is used again when its reply was read to the end.
END_SECONDS = 0.1


class EventReader:
    """A parser of server-sent events in bytes that are cut anywhere.

    It raises ValueError for an event that does not end.
    """

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._data: list[str] = []
        # Bytes of the line, and of the event, that have not ended.
        self._rest_size = self._data_size = 0
        self._is_after_cr = False

    def feed(self, chunk: bytes) -> Iterator[str]:
        if self._is_after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._is_after_cr = chunk.endswith(b"\r")
        self._rest.append(chunk)
        self._rest_size += len(chunk)
        if b"\n" in chunk or b"\r" in chunk:
            lines = b"".join(self._rest).splitlines(keepends=True)
            self._rest = [] if lines[-1].endswith((b"\n", b"\r")) else [lines.pop()]
            self._rest_size = sum(map(len, self._rest))
            for line in lines:
                yield from self._read(line.rstrip(b"\r\n"))
        if self._rest_size + self._data_size > MAX_JSON_BYTES:
            raise ValueError("an event does not end")

    def _read(self, line: bytes) -> Iterator[str]:
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" ").decode())
            self._data_size += len(line)
        elif not line and self._data:
            data, self._data, self._data_size = "\n".join(self._data), [], 0
            yield data


class ObjectStream(openai.AsyncStream[object]):
    """A stream of plain objects.

    As models of pydantic each would be built and taken apart again, with a warning for
    every field that has another type than OpenAI's.
    """

    async def __stream__(self) -> AsyncIterator[object]:
        async with aclosing(self.read_batches(lambda value: value)) as batches:
            async for batch in batches:
                for each in batch:
                    yield each

    async def read_batches(
        self, convert: Callable[[dict[str, Any]], T]
    ) -> AsyncIterator[list[T]]:
        """Yield all the objects that a connection gives at once, together.

        A chunk that is cut to give others a turn is no sign of a pause. Objects that
        come before an error are yielded before it is raised.
        """
        reader, batch = EventReader(), []
        try:
            async with (
                aclosing(self._bytes()) as body,
                aclosing(as_events(body)) as chunks,
            ):
                async for part, is_last in in_turn(chunks):
                    some, end = self._read(reader.feed(part), convert)
                    batch += some
                    if batch and (is_last or end or len(batch) >= BATCH_OBJECTS):
                        yield batch
                        batch = []
                    if isinstance(end, Exception):
                        raise end
                    if end:
                        await _exhaust_chunks(chunks)
                        return
        finally:
            await self.response.aclose()

    async def _bytes(self) -> AsyncIterator[bytes]:
        """Yield the body; of a connection that fails, all that had come before.

        Raise ValueError beyond MAX_BODY_BYTES.
        """
        left = MAX_BODY_BYTES
        try:
            async for chunk in self.response.aiter_bytes():
                yield chunk
                left -= len(chunk)
                if left < 0:
                    break
        except Exception:
            if rest := _read_buffered(self.response):
                yield rest
            raise
        if left < 0:
            raise ValueError("the reply is too long")

    def _read(
        self, found: Iterator[str], convert: Callable[[dict[str, Any]], T]
    ) -> tuple[list[T], Exception | bool]:
        """Return the objects, and True after the last ones, or the next one's error."""
        batch: list[T] = []
        try:
            for data in found:
                if data.startswith(DONE):
                    return batch, True
                batch.append(convert(self._decode(data)))
        except Exception as error:  # noqa: BLE001
            # Whatever it is: the caller raises it.
            return batch, error
        return batch, False

    def read_event(self, value: dict[str, Any]) -> dict[str, Any]:
        """Return an event in the form of chat completions."""
        return value

    def _decode(self, data: str) -> dict[str, Any]:
        value = json.loads(data)
        if not isinstance(value, dict):
            raise ValueError("an event is not an object")
        value = self.read_event(value)
        if error := value.get("error"):
            words = error.get("message") if isinstance(error, dict) else None
            words = words if isinstance(words, str) else ""
            raise openai.APIError(words, self.response.request, body=error)
        return value


def _read_buffered(response: Any) -> bytes:
    """Return the bytes that aiohttp still holds.

    It raises an error before it gives out what came between two frames. b"" with other
    clients, and for compressed bytes.
    """
    body = getattr(response.stream, "_stream", None)
    source = getattr(body, "_aiohttp_response", None)
    if source is None or "content-encoding" in response.headers:
        return b""
    return source.content._read_nowait(-1)


async def in_turn(chunks: AsyncIterator[bytes]) -> AsyncIterator[tuple[bytes, bool]]:
    """Cut the chunks into parts of TURN_BYTES, each with True if its chunk ends there.

    Other tasks have their turn between two parts of one chunk.
    """
    async for chunk in chunks:
        for start in range(0, len(chunk) - TURN_BYTES, TURN_BYTES):
            async with loop_turn():
                yield chunk[start : start + TURN_BYTES], False
        yield chunk[(len(chunk) - 1) // TURN_BYTES * TURN_BYTES :], True


async def _exhaust_chunks(chunks: AsyncIterator[bytes]) -> None:
    try:
        async with asyncio.timeout(END_SECONDS):
            async for _ in chunks:
                pass
    except TimeoutError:
        return


async def as_events(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield a body as the event stream that was asked for.

    A byte order mark would cost the first event; a reply as one JSON document, from a
    server that can't stream, becomes one event.
    """
    head = b""
    async for chunk in chunks:
        head = (head + chunk).lstrip()
        if len(head) > len(BOM):
            break
    head = head.removeprefix(BOM)
    if head.lstrip().startswith(b"{"):
        yield await _as_event(head, chunks)
        return
    yield head
    async for chunk in chunks:
        yield chunk


async def _as_event(head: bytes, chunks: AsyncIterator[bytes]) -> bytes:
    body = bytearray(head)
    async for chunk in chunks:
        body += chunk
        if len(body) > MAX_JSON_BYTES:
            raise ValueError("the reply is too long")
    document = json.dumps(json.loads(body))
    return f"data: {document}\n\ndata: {DONE}\n\n".encode()
