"""A provider on a schedule: an OpenAI-compatible stream whose words are the moments at
which they were due.

A reply begins FIRST seconds after its request; word k is due k / RATE later, and is the
number of milliseconds of clock() at which it was due. So a reader in another process
knows how late each word is, and what the whole text must be.

Usage: python -m bench.streaming.upstream PORT WORDS
"""

import asyncio
import json
import sys
import time

FIRST = 0.2
RATE = 20
# Added to the clock, so that its milliseconds have eleven digits soon after a start:
# pages have shorter numbers that are no words.
SHIFT = 10_000_000
HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)


def clock() -> float:
    """Seconds that all processes of a machine count alike."""
    return time.monotonic() + SHIFT


def due_at(start: int, number: int) -> int:
    return start + number * 1000 // RATE


def whole_text(start: int, words: int) -> str:
    return "".join(f"{due_at(start, number)} " for number in range(words))


def event(delta: dict[str, str], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
    body = {
        "id": "chatcmpl-bench",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "bench",
        "system_fingerprint": "fp_bench",
        "choices": [choice],
    }
    return chunk(f"data: {json.dumps(body)}\n\n".encode())


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


async def answer(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, words: int
) -> None:
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            fields = dict(
                line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:-2]
            )
            await reader.readexactly(int(fields[b"content-length"]))
            start = round((clock() + FIRST) * 1000)
            writer.write(HEAD)
            for number in range(words):
                due = due_at(start, number)
                await asyncio.sleep(due / 1000 - clock())
                writer.write(event({"content": f"{due} "}))
            writer.write(event({}, "stop") + chunk(b"data: [DONE]\n\n") + chunk(b""))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main(port: int, words: int) -> None:
    async def handle(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await answer(reader, writer, words)

    server = await asyncio.start_server(handle, "127.0.0.1", port, backlog=1000)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
