"""The server-sent events in the body of a streamed reply."""

import json
from collections.abc import AsyncIterator, Iterator

from chatsite.fair_queue import loop_turn

BOM = b"\xef\xbb\xbf"
# Of one event, or of a reply that is one document.
MAX_JSON_BYTES = 8_000_000
DONE = "[DONE]"
# What is read before it is the turn of others: some dozen tokens.
TURN_BYTES = 4_000


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


async def in_turn(chunks: AsyncIterator[bytes]) -> AsyncIterator[tuple[bytes, bool]]:
    """Cut the chunks into parts of TURN_BYTES, each with True if its chunk ends there.

    Other tasks have their turn between two parts of one chunk.
    """
    async for chunk in chunks:
        for start in range(0, len(chunk) - TURN_BYTES, TURN_BYTES):
            async with loop_turn():
                yield chunk[start : start + TURN_BYTES], False
        yield chunk[(len(chunk) - 1) // TURN_BYTES * TURN_BYTES :], True


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
