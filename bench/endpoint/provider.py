"""A provider with all three APIs, in the process of a benchmark.

It records its answers byte by byte, and can reply at a steady pace.
"""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Any

from aiohttp import web

from tests.fakes.wires import Reply, find_wire, write_events, write_whole

WORDS = ("ferry", "Kyoto", "café", "渡轮", "🙂", "naïve", "λόγος", "one", "two,", "and")
MOST_BYTES = 64 * 1024 * 1024


class Provider:
    """A provider that records its answers.

    `answers` has the bytes of the answer to each body, by the body's SHA-256. `pace` is
    the time in seconds between two words of a stream."""

    def __init__(self, *, words: int = 20, pace: float = 0.0) -> None:
        self.words, self.pace = words, pace
        self.answers: dict[str, bytearray] = {}
        self.url = ""

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Provider"]:
        app = web.Application(client_max_size=MOST_BYTES)
        app.router.add_post("/{path:.*}", self.answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/v1"
        try:
            yield self
        finally:
            await runner.cleanup()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        name = hashlib.sha256(raw).hexdigest()
        answered = self.answers[name] = bytearray()
        body, random = json.loads(raw), Random(name)
        wire = find_wire(request.path)
        reply = Reply(" ".join(random.choices(WORDS, k=self.words)))
        if not body.get("stream"):
            whole = json.dumps(
                write_whole(wire, "m", reply),
                indent=random.choice([None, 1]),
                ensure_ascii=random.random() < 0.5,
            )
            answered += whole.encode()
            return web.Response(body=bytes(answered), content_type="application/json")
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for piece in self._cut(write_events(wire, "m", reply), random):
            answered += piece
            with suppress(ConnectionError):  # the site's process may be killed
                await response.write(piece)
            if self.pace:
                await asyncio.sleep(self.pace)
        return response

    def _cut(self, events: Any, random: Random) -> Any:
        """Yield whole events at a pace, else random pieces with SSE comments."""
        if self.pace:
            yield from events
            return
        whole = b"".join(
            event if random.random() < 0.9 else b": ping\n\n" + event
            for event in events
        )
        while whole:
            size = random.choice((1, 7, 100, 1_000, 5_000))
            yield whole[:size]
            whole = whole[size:]
