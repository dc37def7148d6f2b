"""People at the other end of a socket: each sends one message and reads its reply, word
by word, until it has ended.
"""

import asyncio
import json
import re
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from . import upstream

NUMBER = re.compile(r"\b(\d{11,}) ")
STATE = re.compile(r'data-state="(\w+)"')
IN_HTML = re.compile(r"\b\d{11,}\b")
# Milliseconds in which a reply surely ends: other numbers of a page are not its words.
LONGEST = 600_000


@dataclass
class ReplyTimes:
    """One reply as it was read. Times in milliseconds."""

    sent_at: float
    late: list[float] = field(default_factory=list)
    starts_at: int = 0
    is_whole: bool = False

    @property
    def first_over_upstream(self) -> float:
        """Return the time from Enter to the first word, without the
        provider's share.
        """
        return self.starts_at + self.late[0] - self.sent_at - upstream.FIRST * 1000


@dataclass(frozen=True)
class Seat:
    """A user's connection: a URL, and the headers of the browser."""

    url: str
    headers: dict[str, str] = field(default_factory=dict)


class Person:
    """Reads texts that grow; how they arrive is up to the subclass."""

    subprotocols: tuple[str, ...] = ()

    def __init__(self, seat: Seat, words: int) -> None:
        self.seat, self.words = seat, words

    async def enter(self) -> None:
        self.socket: ClientConnection = await connect(
            self.seat.url,
            additional_headers=self.seat.headers,
            subprotocols=self.subprotocols or None,
            max_size=None,
            open_timeout=60,
            ping_interval=None,
            compression=None,
        )
        await self.greet()

    async def greet(self) -> None:
        """Receive the messages before the first one of the conversation."""

    async def leave(self) -> None:
        await self.socket.close()

    async def send(self) -> None:
        raise NotImplementedError

    def pieces(self) -> AsyncIterator[str]:
        """Yield the parts that are added to the reply, until it has ended."""
        raise NotImplementedError

    async def ask(self) -> ReplyTimes:
        reading = ReplyTimes(upstream.clock() * 1000)
        await self.send()
        text, read_to = "", 0
        async for piece in self.pieces():
            now = upstream.clock() * 1000
            text += piece
            for found in NUMBER.finditer(text, read_to):
                reading.late.append(now - int(found[1]))
                reading.starts_at = reading.starts_at or int(found[1])
                read_to = found.end()
        wanted = upstream.whole_text(reading.starts_at, self.words)
        reading.is_whole = text.split() == wanted.split()
        return reading


class BarePerson(Person):
    async def send(self) -> None:
        await self.socket.send("Hello")

    async def pieces(self) -> AsyncIterator[str]:
        while (piece := await self.socket.recv()) != "\n":
            yield piece


class JsonPerson(Person):
    """The socket's JSON contract. Checks every frame against what is known."""

    subprotocols = ("windowpane.json",)

    async def send(self) -> None:
        command = {"type": "send", "client_id": uuid.uuid4().hex, "text": "Hello"}
        await self.socket.send(json.dumps(command))

    async def pieces(self) -> AsyncIterator[str]:
        known, turn = "", None
        while True:
            event = json.loads(await self.socket.recv())
            kind = event["type"]
            if kind == "error":
                raise RuntimeError(f"refused: {event}")
            turn = event["turn"] if kind == "ack" else turn
            # A sync tells the end of an earlier turn, too.
            if kind in ("frame", "end") and event["turn"] == turn:
                text = whole_after(known, event)
                yield text[len(known) :]
                known = text
                if kind == "end":
                    return


def whole_after(known: str, event: dict[str, Any]) -> str:
    """The reply so far, as the contract has it; a frame may not be missing."""
    text = event.get("text")
    if event["type"] == "frame":
        text = known[: event["base"]] + event["tail"]
        if event["base"] > len(known):
            raise RuntimeError("a frame is missing, and no sync came")
    if known.startswith(text):
        return known  # a sync tells what is saved, which may be less
    if not text.startswith(known):
        raise RuntimeError("what was said has changed")
    return text


class HtmlPerson(Person):
    """A page: fragments of HTML, of which it reads the words it does not know yet."""

    async def greet(self) -> None:
        await self._fragment()  # the first sync

    async def _fragment(self) -> str:
        """The next one; a long one comes in pieces."""
        whole = ""
        while True:
            html = await self.socket.recv()
            if not html.startswith("<!--piece"):
                return html
            mark, _, part = html.partition("-->")
            whole += part
            if mark.endswith("last"):
                return whole

    async def send(self) -> None:
        form = {"type": "send", "client_id": uuid.uuid4().hex, "text": "Hello"}
        await self.socket.send(json.dumps(form))

    async def pieces(self) -> AsyncIterator[str]:
        sent = last = int(upstream.clock() * 1000)
        end = last + LONGEST
        while True:
            html = await self._fragment()
            if "composer-error" in html and 'data-code="' in html:
                raise RuntimeError(f"refused: {html[:300]}")
            # A reply that comes at once stands in both panes.
            for number in IN_HTML.findall(html):
                if last < int(number) < end:
                    last = int(number)
                    yield f"{number} "
            # A sync has the earlier turns, too; the newest is the last.
            if last > sent and STATE.findall(html)[-1:] == ["done"]:
                return


class ChainlitPerson(Person):
    """Socket.IO over one WebSocket, as Chainlit's page speaks it."""

    async def greet(self) -> None:
        await self.socket.recv()  # Engine.IO: open
        auth = {"sessionId": str(uuid.uuid4()), "clientType": "webapp"}
        await self.socket.send(f"40{json.dumps(auth)}")
        await self._until("40")
        await self._emit("connection_successful")

    async def _emit(self, name: str, *values: Any) -> None:
        await self.socket.send(f"42{json.dumps([name, *values])}")

    async def _until(self, start: str) -> str:
        while True:
            text = await self.socket.recv()
            if text == "2":
                await self.socket.send("3")
            elif text.startswith(start):
                return text[len(start) :]

    async def send(self) -> None:
        message = {
            "threadId": "",
            "id": str(uuid.uuid4()),
            "name": "user",
            "type": "user_message",
            "output": "Hello",
            "createdAt": "2026-01-01T00:00:00.000Z",
        }
        payload = {"message": message, "fileReferences": []}
        await self._emit("client_message", payload)

    async def pieces(self) -> AsyncIterator[str]:
        has_begun = False
        while True:
            name, *values = json.loads(await self._until("42"))
            if name == "stream_start":
                has_begun = True
                yield values[0]["output"]
            elif name == "stream_token" and not values[0]["isSequence"]:
                yield values[0]["token"]
            elif name == "task_end" and has_begun:
                return


async def ask_all(people: list[Person], spread: float) -> list[ReplyTimes]:
    """Everybody sends one message, evenly within `spread` seconds."""

    async def ask(number: int, person: Person) -> ReplyTimes:
        await asyncio.sleep(spread * number / len(people))
        return await person.ask()

    return await asyncio.gather(*(ask(*each) for each in enumerate(people)))
