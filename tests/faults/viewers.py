"""People at their screens while things break: they put texts together from frames,
come back when a socket dies, and send again what was not acknowledged.
"""

import asyncio
import json
import threading
import time
import urllib.request
import uuid
from contextlib import suppress
from dataclasses import dataclass, field

from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from tests.patience import wait_for

RETRY_SECONDS = 0.3
SYNC_SECONDS = 0.5
REREAD_SECONDS = 2.0
UNFINISHED = ("queued", "running", "waiting")


@dataclass
class Reply:
    """One turn as a client sees it, by the contract of the JSON socket."""

    attempt: int = 0
    known: str = ""
    gaps: int = 0
    frames: int = 0
    first_at: float | None = None
    last_at: float = 0.0
    states: list[tuple[str, int]] = field(default_factory=list)
    end: dict | None = None
    ended_at: float = 0.0
    # What the frames had given when the end came: a beginning of the final text.
    streamed: str = ""

    def take(self, event):
        """False: the frame begins beyond what is known; the database has to help."""
        now = time.monotonic()
        if event["type"] == "state":
            self.states.append((event["state"], event["position"]))
        elif event["type"] == "end" and self.end != event:
            self.end, self.ended_at, self.streamed = event, now, self.known
        elif event["type"] == "frame":
            return self._extend(event, now)
        return True

    def _extend(self, frame, now):
        if frame["attempt"] < self.attempt:
            return True
        if frame["attempt"] > self.attempt:
            self.attempt, self.known = frame["attempt"], ""
        if frame["base"] > len(self.known):
            self.gaps += 1
            return False
        self.known = self.known[: frame["base"]] + frame["tail"]
        self.frames += 1
        self.first_at = self.first_at or now
        self.last_at = now
        return True

    @property
    def text(self):
        """Return the text of the screen."""
        return self.end["text"] if self.end else self.known


class Viewer:
    """One conversation on one screen. `sites` are tried in turn."""

    def __init__(self, crowd, sites, path):
        self.crowd = crowd
        self.sites = list(sites)
        self.path = path
        self.outbox = {}  # client_id -> command, until it is acknowledged
        self.texts = {}  # client_id -> text, of everything that was ever sent
        self.acks = {}
        self.replies = {}
        self.errors = []
        self.closes = []
        self.connects = 0
        self.socket = None
        self.is_closed = False
        self.mentioned = set()  # turns, by this socket
        self._asked_at = 0.0

    async def run(self):
        while not self.is_closed:
            site = self.sites[0]
            try:
                await self._sit_at(site)
            except (OSError, WebSocketException, TimeoutError) as error:
                self.closes.append((time.monotonic(), type(error).__name__))
            self.socket = None
            self.sites.append(self.sites.pop(0))
            await asyncio.sleep(RETRY_SECONDS)

    async def _sit_at(self, site):
        address = f"{site.socket_url}/ws{self.path}"
        async with connect(
            address,
            origin=site.url,
            additional_headers={"Cookie": self.crowd.cookie},
            subprotocols=["windowpane.json"],
            open_timeout=5,
            ssl=site.tls,
            ping_interval=1,
            ping_timeout=3,
            close_timeout=1,
        ) as socket:
            self.connects += 1
            self.socket = socket
            self.mentioned = set()
            for command in list(self.outbox.values()):
                await socket.send(json.dumps(command))
            await self._sync()
            rereading = asyncio.create_task(self._reread(site))
            try:
                async for text in socket:
                    await self._take(json.loads(text))
            finally:
                rereading.cancel()

    async def _take(self, event):
        if event["type"] == "ack":
            self.outbox.pop(event["client_id"], None)
            self.acks.setdefault(event["client_id"], event)
        elif event["type"] == "error":
            self.errors.append(event)
            if event.get("retry_after") is not None:
                asyncio.get_running_loop().call_later(
                    event["retry_after"] + 0.1, self._resend
                )
        elif "turn" in event:
            self.mentioned.add(event["turn"])
            reply = self.replies.setdefault(event["turn"], Reply())
            if not reply.take(event):
                await self._sync()

    def _resend(self):
        for command in list(self.outbox.values()):
            self.crowd.soon(self._send(command))

    async def _reread(self, site):
        """A new socket reports turns that run and the last one that ended; how the
        others ended is in the transcript."""
        while True:
            await asyncio.sleep(REREAD_SECONDS)
            acks = [a for a in self.acks.values() if a["turn"] not in self.mentioned]
            lost = [ack for ack in acks if not self.has_ended(ack["turn"])]
            if lost:
                with suppress(OSError):
                    rows = await asyncio.to_thread(self._transcript, site)
                    for ack in lost:
                        self._find_end(rows, ack)

    def _transcript(self, site):
        address = f"{site.url}{self.path}transcript.json"
        request = urllib.request.Request(address, headers={"Cookie": self.crowd.cookie})
        with urllib.request.urlopen(request, timeout=5, context=site.tls) as response:
            return json.load(response)["messages"]

    def _find_end(self, rows, ack):
        mine = [row for row in rows if row["turn"] == ack["turn"]]
        if not mine or mine[0]["state"] in UNFINISHED:
            return
        replies = [row for row in mine if row["role"] == "assistant"]
        kept = [r for r in replies if not r["superseded"] and not r["tool_calls"]]
        end = {"type": "end", "turn": ack["turn"], "state": mine[0]["state"]}
        reply = self.replies.setdefault(ack["turn"], Reply())
        reply.take({**end, "text": kept[0]["text"] if kept else ""})

    def has_ended(self, turn):
        return turn in self.replies and self.replies[turn].end is not None

    async def _sync(self):
        if time.monotonic() - self._asked_at >= SYNC_SECONDS:
            self._asked_at = time.monotonic()
            await self.socket.send('{"type": "sync"}')

    async def _send(self, command):
        with suppress(WebSocketException, AttributeError):
            await self.socket.send(json.dumps(command))

    def send(self, text, client_id=None):
        """Send now, and again after every reconnect until it is acknowledged."""
        client_id = client_id or uuid.uuid4().hex
        command = {"type": "send", "client_id": client_id, "text": text}
        self.texts[client_id] = text
        self.outbox[client_id] = command
        self.crowd.soon(self._send(command))
        return client_id

    def command(self, **values):
        self.crowd.soon(self._send(values))

    def reply_to(self, client_id):
        ack = self.acks.get(client_id)
        return self.replies.get(ack["turn"]) if ack else None

    def wait_acked(self, client_id, seconds=20.0):
        return wait_for(lambda: self.acks.get(client_id), seconds, "the ack")

    def wait_streaming(self, client_id, characters=1, seconds=20.0):
        def is_streaming():
            reply = self.reply_to(client_id)
            return reply and len(reply.known) >= characters and reply

        return wait_for(is_streaming, seconds, "the reply's first words")

    def wait_end(self, client_id, seconds=30.0):
        def has_end():
            reply = self.reply_to(client_id)
            return reply and reply.end

        return wait_for(has_end, seconds, f"the end of {self.texts[client_id]!r}")


class Crowd:
    """Many viewers of one user, on an event loop in a thread of their own."""

    def __init__(self, cookie):
        self.cookie = cookie
        self.viewers = []
        self._tasks = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        asyncio.run_coroutine_threadsafe(self._leave(), self._loop).result(20)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _leave(self):
        for viewer in self.viewers:
            viewer.is_closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def soon(self, work):
        self._loop.call_soon_threadsafe(self._keep, work)

    def _keep(self, work):
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def open(self, sites, path):
        """A viewer with an open socket."""
        viewer = Viewer(self, sites, path)
        self.viewers.append(viewer)
        self.soon(viewer.run())
        wait_for(lambda: viewer.socket, 20, "an open socket")
        return viewer
