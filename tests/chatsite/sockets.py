"""A client of the socket, inside the process of the test."""

import asyncio
import json

from channels.testing import WebsocketCommunicator

from chatsite.asgi import protocols
from chatsite.live.outbox import TRANSPORT
from chatsite.turns import runner
from tests.clients import text_of
from tests.patience import PATIENCE

SITE = "http://testserver"
TIMEOUT = 10 * PATIENCE


class Transport:
    """The server's end of a client's socket, as daphne has it: it takes texts at once
    (chatsite/live/backpressure.py)."""

    is_flowing = True

    def __init__(self, socket):
        self.socket = socket
        self.is_broken = False

    def serverSend(self, text):  # noqa: N802
        if self.is_broken:
            raise OSError("broken")
        self.socket.output_queue.put_nowait({"type": "websocket.send", "text": text})

    async def drained(self):
        pass

    def handled(self):
        pass


class Chat:
    """A client of the JSON subprotocol."""

    def __init__(
        self,
        conversation,
        session="",
        *,
        protocol="windowpane.json",
        language="",
        with_transport=False,
    ):
        headers = [(b"host", b"testserver"), (b"origin", SITE.encode())]
        cookies = {"sessionid": session, "django_language": language}
        pairs = [f"{name}={value}" for name, value in cookies.items() if value]
        if pairs:
            headers.append((b"cookie", "; ".join(pairs).encode()))
        self.socket = WebsocketCommunicator(
            protocols,
            f"/ws/c/{getattr(conversation, 'uuid', conversation)}/",
            headers=headers,
            subprotocols=[protocol] if protocol else [],
        )
        if with_transport:
            self.transport = Transport(self.socket)
            self.socket.scope["extensions"] = {TRANSPORT: self.transport}

    @property
    def waiting(self):
        """Return how many sent texts the client has not read."""
        return self.socket.output_queue.qsize()

    async def __aenter__(self):
        self.accepted, self.detail = await self.socket.connect(timeout=TIMEOUT)
        return self

    async def __aexit__(self, *error):
        await self.socket.disconnect()
        for task in list(runner._tasks):
            await asyncio.wait_for(task, TIMEOUT)

    async def command(self, **values):
        await self.socket.send_to(text_data=json.dumps(values))

    async def html(self, words):
        """All fragments up to the first one with these words."""
        seen = [await self.socket.receive_from(timeout=TIMEOUT)]
        while words not in seen[-1]:
            seen.append(await self.socket.receive_from(timeout=TIMEOUT))
        return "".join(seen)

    async def event(self):
        return json.loads(await self.socket.receive_from(timeout=TIMEOUT))

    async def until(self, kind, **wanted):
        """All events up to the first one of this kind with these values."""
        seen = []
        while True:
            seen.append(await self.event())
            last = seen[-1]
            if last["type"] == kind and wanted.items() <= last.items():
                return seen

    async def follow(self):
        """All events up to the end of the reply, as a client reads them: it asks again
        where it came in between the checkpoint that it got and the next one."""
        seen = []
        while not seen or seen[-1]["type"] != "end":
            seen.append(await self.event())
            if seen[-1].get("base", 0) > len(text_of(seen)):
                await self.command(type="sync")
        return seen

    async def say(self, text, client_id=None):
        """Send, and give back the event that ends the turn."""
        client_id = client_id or f"id-{abs(hash(text))}"
        await self.command(type="send", client_id=client_id, text=text)
        ack = (await self.until("ack"))[-1]
        return (await self.until("end", turn=ack["turn"]))[-1]
