"""Backpressure for daphne's sockets and requests.

Incoming messages and bodies are bounded, and read only as fast as they are handled.
Outgoing messages are not bounded, but wait for their reader; a reader that takes
nothing is cut off. A close frame can ask pages to reconnect.

daphne alone keeps all outgoing messages in memory until the other end has read them,
and queues all incoming ones. It keeps the body of a request, of any size, on the disk,
and puts all of it into memory before it calls the application.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable
from contextvars import Context
from functools import partial
from io import BytesIO
from typing import Any
from urllib.parse import unquote

from channels.db import database_sync_to_async
from daphne import http_protocol
from daphne.cli import CommandLineInterface
from daphne.server import Server
from daphne.ws_protocol import WebSocketFactory, WebSocketProtocol
from django.conf import settings
from twisted.internet import tcp
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IPushProducer
from zope.interface import implementer

from chatsite import metrics
from chatsite.fair_queue import working_for
from chatsite.ops.entrances import STRANGER_BYTES, Entrance, Headers, find_entrance
from chatsite.ops.load import TOO_BUSY, TOO_LARGE
from memory.database import TROUBLE

from .outbox import TRANSPORT

logger = logging.getLogger(__name__)

# Service restart, try again later: autobahn lets only libraries send these.
COME_AGAIN = (1012, 1013)
# Bytes of one incoming message: the longest text that may be sent, all of it escaped.
MAX_INCOMING = 512 * 1024
# With so many messages not yet handled, no more are read from a socket.
MAX_AHEAD = 16
# A reader that takes nothing for so long is gone.
STALL_SECONDS = 20.0
# How long a process that ends waits for answers that are under way.
REQUESTS_SECONDS = 3.0
# The application gets a body in pieces of this size.
PIECE_BYTES = 64 * 1024
# The least that a chunk of an incoming body counts: very small ones take the time of
# large ones.
MIN_CHUNK_BYTES = 256
# Bytes of the bodies of one user that wait on the disk at once.
MAX_WAITING_BYTES = 512 * 1024 * 1024
# How long a client that was answered early may go on sending. If its connection was
# closed at once, it would be reset, and the client might not read the answer.
LINGER_SECONDS = 5.0


@implementer(IPushProducer)
class WriteBuffer:
    """The count of the bytes that wait for the reader.

    The transport pauses it when its buffer is full (64 KiB) and resumes it when the
    buffer is empty again; the bytes written in between are counted.
    """

    def __init__(self) -> None:
        self.waiting = 0
        self.flows = asyncio.Event()
        self.flows.set()

    def pauseProducing(self) -> None:  # noqa: N802
        self.flows.clear()

    def resumeProducing(self) -> None:  # noqa: N802
        self.waiting = 0
        self.flows.set()

    def stopProducing(self) -> None:  # noqa: N802
        """Release those who wait: the connection is lost."""
        self.flows.set()

    def add_bytes(self, size: int) -> int:
        """Return the bytes that wait, these included; 0 while the reader keeps up."""
        if not self.flows.is_set():
            self.waiting += size
        return self.waiting


class BoundedProtocol(WebSocketProtocol):
    """daphne's protocol with limits in both directions.

    It cuts off a reader for which too much waits, and reads at most MAX_AHEAD messages
    further than the application has handled.
    """

    write_buffer: WriteBuffer | None = None
    ahead = 0
    reads = True

    def onOpen(self) -> None:  # noqa: N802
        super().onOpen()
        self.maxMessagePayloadSize = self.maxFramePayloadSize = MAX_INCOMING
        self.write_buffer = WriteBuffer()
        # The HTTP channel that took the handshake is still registered.
        self.unregisterProducer()
        self.registerProducer(self.write_buffer, True)

    def onClose(self, *args: object) -> None:  # noqa: N802
        if self.write_buffer:
            self.write_buffer.stopProducing()
        super().onClose(*args)

    def sendMessage(self, payload: bytes, *args: object, **options: object) -> None:  # noqa: N802
        if self.state != self.STATE_OPEN:
            return  # closing: the other end takes nothing any more
        limit = settings.SOCKET_BUFFER_BYTES
        if self.write_buffer and 0 < limit < self.write_buffer.add_bytes(len(payload)):
            self._cut_off(f"more than {limit} bytes wait for it")
            return
        # autobahn has one limit for both ways; it is meant for what comes in.
        incoming, self.maxMessagePayloadSize = self.maxMessagePayloadSize, 0
        try:
            super().sendMessage(payload, *args, **options)
        finally:
            self.maxMessagePayloadSize = incoming

    def sendData(self, data: bytes, sync: bool = False, chopsize: Any = None) -> None:  # noqa: N802
        # autobahn's own makes a coloured line for the log each time, also where nothing
        # is logged, which takes longer than the write.
        if self.state != self.STATE_OPEN or sync or chopsize or self.send_queue:
            super().sendData(data, sync, chopsize)
        elif rest := data[self._write_at_once(data) :]:
            self.transport.write(rest)

    def _write_at_once(self, data: bytes) -> int:
        """Write to the kernel without waiting; return the number of bytes it has taken.

        Twisted first waits until there is room, as there nearly always is: one more
        round of the event loop, and two more system calls, for each frame.
        """
        line = self.transport
        is_idle = isinstance(line, tcp.Server) and line.connected and not line.TLS
        if not is_idle or line.dataBuffer or line._tempDataLen:
            return 0
        written = line.writeSomeData(data)
        # A lost connection is noticed where the rest is written.
        return written if isinstance(written, int) else 0

    @property
    def is_flowing(self) -> bool:
        """True while the reader keeps up with the messages that it is sent."""
        return self.write_buffer is None or self.write_buffer.flows.is_set()

    async def drained(self) -> None:
        """Wait until the reader has taken all that was sent, or is gone."""
        if self.is_flowing:
            return
        try:
            async with asyncio.timeout(STALL_SECONDS):
                await self.write_buffer.flows.wait()
        except TimeoutError:
            self._cut_off(f"it has taken nothing for {STALL_SECONDS:.0f} s")

    def _cut_off(self, why: str) -> None:
        logger.warning("socket cut off: %s", why)
        metrics.SOCKETS_CUT.labels("slow_reader").inc()
        self.dropConnection(abort=True)

    def onMessage(self, payload: bytes, isBinary: bool) -> None:  # noqa: N802, N803
        super().onMessage(payload, isBinary)
        self.ahead += 1
        if self.ahead >= MAX_AHEAD:
            self.reads = False
            self.transport.pauseProducing()

    def processData(self) -> bool:  # noqa: N802
        # The data of one read can hold thousands of messages.
        return self.reads and super().processData()

    def handled(self) -> None:
        """Count one message as handled by the application; read on if it keeps up."""
        self.ahead -= 1
        if self.reads or self.ahead > MAX_AHEAD // 2:
            return
        self.reads = True
        if self.state != self.STATE_CLOSED:
            self.transport.resumeProducing()
            self.consumeData()

    def serverClose(self, code: int | None = None) -> None:  # noqa: N802
        if code in COME_AGAIN:
            self.sendCloseFrame(code=code)
        else:
            super().serverClose(code)


class UnreadRequest(http_protocol.WebRequest):
    """daphne's request with a bounded body that the application reads at its own pace.

    A body that is larger than its entrance takes is not received any further: the
    application is called at once, without the body, and answers with 413 or another
    error. Above STRANGER_BYTES the sender is looked up first.
    """

    write_buffer: WriteBuffer | None = None
    # Answered for longer than a page may take: its application has its own deadlines.
    takes_long = False
    # Bytes received so far, and how many may come before the next check.
    received = 0
    allowed = STRANGER_BYTES
    is_checked = False
    # In the scope of a request whose body is not received (load.py).
    refusal = ""
    is_chunked = False
    # Whose body it is, where that was looked up.
    sender: Hashable = None
    is_whole = False
    # What was received, until the application has read it.
    body: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Twisted would make a form of it for itself, in the event loop: of 48 MB that
        # takes seconds. Django reads it in a thread.
        self._parsePOSTFormSubmission = False

    def gotLength(self, length: int | None) -> None:  # noqa: N802
        super().gotLength(length)
        self.is_chunked = length is None
        if length and length > self.allowed:
            self._check_size(length)

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802
        if self.refusal:
            return
        super().handleContentChunk(data)
        size = max(len(data), MIN_CHUNK_BYTES) if self.is_chunked else len(data)
        self.received += size
        if self.sender is not None:
            _waiting[self.sender] += size
            if _waiting[self.sender] > MAX_WAITING_BYTES:
                self._refuse_body(TOO_BUSY)
                return
        if self.received > self.allowed:
            self._check_size(self.received)

    def _check_size(self, size: int) -> None:
        path = unquote(self.channel._path.partition(b"?")[0].decode("ascii", "replace"))
        entrance = find_entrance(path)
        if size > entrance.max_bytes() or self.is_checked:
            self._refuse_body(TOO_LARGE)
            return
        self.is_checked, self.allowed = True, entrance.max_bytes()
        self.channel._networkProducer.pauseProducing()
        loop = asyncio.get_running_loop()
        self._check = loop.create_task(self._check_sender(entrance))

    async def _check_sender(self, entrance: Entrance) -> None:
        """Let the sender go on only if it is known."""
        headers = self.requestHeaders.getAllRawHeaders()
        pairs = [(name.lower(), value) for name, values in headers for value in values]
        with working_for(("stranger", getattr(self.client, "host", ""))):
            sender = await _find_sender(entrance, pairs)
        if self.is_whole or self.refusal or self.channel is None:
            return
        if sender is None:
            self._refuse_body(TOO_LARGE)
            return
        self.sender = sender
        _waiting[sender] += self.received
        self.channel._networkProducer.resumeProducing()

    def _refuse_body(self, refusal: str) -> None:
        self.refusal = refusal
        self._free_space()
        self.content.close()
        self.content = BytesIO()
        # Or Twisted would ask for the body.
        self.requestHeaders.removeHeader(b"Expect")
        # Not at once: Twisted is in the middle of the headers, or of a piece.
        asyncio.get_running_loop().call_soon(self._answer_early)

    def _answer_early(self) -> None:
        if (channel := self.channel) is None:
            return
        self.responseHeaders.setRawHeaders(b"Connection", [b"close"])
        channel.persistent = False
        channel.dataReceived = _ignore_data
        channel.loseConnection = partial(_linger, channel)
        channel._networkProducer.resumeProducing()
        if not self.is_whole:
            channel.allContentReceived()

    def process(self) -> Any:
        # daphne reads it, and fails at what is no ASCII in it (chatsite/headers.py).
        self.requestHeaders.removeHeader(b"Daphne-Root-Path")
        # daphne has nothing to read: receive_piece() does it.
        self.is_whole = True
        self.body, self.content = self.content, BytesIO()
        self.body.seek(0)
        upgrades = self.requestHeaders.getRawHeaders(b"Upgrade", [b""])
        if upgrades[0].lower() == b"websocket":
            self.close_body()
        return super().process()

    async def receive_piece(self, receive: Callable[[], Awaitable[Any]]) -> Any:
        """Return the next ASGI message: a piece of the body, else what daphne sends."""
        if self.body and (piece := self.body.read(PIECE_BYTES)):
            # Others go on between two pieces.
            await asyncio.sleep(0)
            return {"type": "http.request", "body": piece, "more_body": True}
        self.close_body()
        return await receive()

    def close_body(self) -> None:
        self._free_space()
        if self.body:
            self.body.close()
            self.body = None

    def _free_space(self) -> None:
        """Stop counting the body among those of its sender that wait on the disk."""
        if self.sender is not None:
            _waiting[self.sender] -= self.received
            if _waiting[self.sender] <= 0:
                del _waiting[self.sender]
            self.sender = None

    def check_timeouts(self) -> None:
        if not self.takes_long:
            super().check_timeouts()

    async def drained(self) -> bool:
        """Wait until the reader has taken all that was sent.

        Returns False if the reader takes nothing for STALL_SECONDS, or is gone.
        """
        if self.finished or self.channel is None:
            return False
        if self.write_buffer is None:
            self.write_buffer = WriteBuffer()
            self.registerProducer(self.write_buffer, True)
        try:
            async with asyncio.timeout(STALL_SECONDS):
                await self.write_buffer.flows.wait()
        except TimeoutError:
            return False
        return True

    def cut_off(self) -> None:
        """End the answer so that its reader knows that it is not whole."""
        if self.channel is None:
            return
        if self.write_buffer:
            self.unregisterProducer()
        # What was written is still sent; the end of a body is not.
        self.channel.loseConnection()

    def finish(self) -> None:
        self._free_space()
        if self.write_buffer:
            self.unregisterProducer()
        super().finish()

    def connectionLost(self, reason: Any) -> None:  # noqa: N802
        self._free_space()
        if self.write_buffer:
            self.write_buffer.stopProducing()
        super().connectionLost(reason)


# By user: bytes of large bodies that wait.
_waiting: Counter[Hashable] = Counter()


async def _find_sender(entrance: Entrance, headers: Headers) -> Hashable:
    try:
        return await database_sync_to_async(entrance.find_sender)(headers)
    except TROUBLE:
        return "unknown"  # the application meets the same error, and reports it


def _ignore_data(data: bytes) -> None:
    """Drop the rest of a body after an early answer."""


def _linger(channel: Any) -> None:
    """Close this side now, and the other one when the client does, or after a while."""
    channel._networkProducer.unregisterProducer()
    if channel.isSecure():
        channel.transport.loseConnection()
        return
    channel.transport.loseWriteConnection()
    loop = asyncio.get_running_loop()
    loop.call_later(LINGER_SECONDS, channel.transport.abortConnection)


def give_out_bodies(application: Any) -> Any:
    """Wrap the application so that it reads the body of a request when it wants to."""

    async def run(scope: dict[str, Any], receive: Any, send: Any) -> None:
        request = scope["extensions"].get(TRANSPORT)
        if not isinstance(request, UnreadRequest):
            await application(scope, receive, send)
            return
        if request.refusal:
            scope[request.refusal] = True
        try:
            await application(scope, partial(request.receive_piece, receive), send)
        finally:
            request.close_body()

    return run


class BoundedServer(Server):
    """daphne's server, which gives applications their transport and ends in order.

    It cancels its applications only after they have handed over their work.
    """

    hand_over: Callable[[], Awaitable[None]]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.application = give_out_bodies(self.application)
        self.ports: list[Any] = []

    def listen_success(self, port: Any) -> None:
        self.ports.append(port)
        super().listen_success(port)

    def create_application(self, protocol: Any, scope: dict[str, Any]) -> Any:
        if isinstance(protocol, BoundedProtocol | UnreadRequest):
            extensions = scope.get("extensions") or {}
            scope["extensions"] = {**extensions, TRANSPORT: protocol}
        return super().create_application(protocol, scope)

    def kill_all_applications(self) -> Deferred[None]:
        return Deferred.fromCoroutine(self._end())

    async def _end(self) -> None:
        """Hand over the work of this process, then cancel its applications.

        A cancelled application closes no socket: its page would wait for the connection
        to break, and not learn that it may reconnect at once.
        """
        loop = asyncio.get_running_loop()
        # New connections are refused from now on, so a proxy takes another process.
        for port in self.ports:
            port.stopListening()
        # The signal can find the context of a request that waits for its thread, in
        # which asgiref takes another wait for one for a deadlock.
        work = loop.create_task(type(self).hand_over(), context=Context())
        try:
            await Deferred.fromFuture(work)
        except Exception:
            # Twisted does not log it, and the process ends in any case.
            logger.exception("process ends without handing over")
        await Deferred.fromFuture(loop.create_task(self._finish_requests()))
        # daphne's own method stops at the first connection without an application,
        # such as the request that a socket began as.
        for protocol, details in list(self.connections.items()):
            if "application_instance" not in details:
                del self.connections[protocol]
        await super().kill_all_applications()

    async def _finish_requests(self) -> None:
        """Wait for answers that are under way, for REQUESTS_SECONDS at most.

        A form that is cut off becomes an error page (502), as no proxy may send it
        twice, and its user cannot know if it was saved.
        """
        if answers := self._list_answers():
            await asyncio.wait(answers, timeout=REQUESTS_SECONDS)

    def _list_answers(self) -> list[asyncio.Future[None]]:
        """Return the applications of unfinished requests.

        Streams that take minutes are not among them: they end as sockets do.
        """
        found = (
            details.get("application_instance")
            for protocol, details in self.connections.items()
            if isinstance(protocol, UnreadRequest) and not protocol.takes_long
        )
        return [each for each in found if each is not None and not each.done()]


def install_backpressure(hand_over: Callable[[], Awaitable[None]]) -> None:
    """Make daphne use these classes; call this before it opens its ports.

    `hand_over` is awaited when the process is to end.
    """
    BoundedServer.hand_over = staticmethod(hand_over)
    WebSocketFactory.protocol = BoundedProtocol
    http_protocol.WebRequest = UnreadRequest
    CommandLineInterface.server_class = BoundedServer
