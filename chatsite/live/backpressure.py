"""daphne's sockets as the site needs them. What comes in has a limit, and is read only
as fast as it is worked off; what goes out has none, but waits for its reader, and those
who do not read are cut off. And pages can be asked to come again.

daphne takes whatever a socket is sent and keeps it in memory until the other end has
read it, and queues whatever the other end sends.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import Any

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

from .outbox import TRANSPORT

logger = logging.getLogger(__name__)

# Service restart, try again later: autobahn lets only libraries say these.
COME_AGAIN = (1012, 1013)
# Bytes of one incoming message: the longest text that may be sent, all of it escaped.
MAX_INCOMING = 512 * 1024
# Messages that wait to be worked off before no more are read from a socket.
MAX_AHEAD = 16
# A reader that takes nothing for so long is gone.
STALL_SECONDS = 20.0
# How long a process that ends waits for answers that are under way.
REQUESTS_SECONDS = 3.0


@implementer(IPushProducer)
class WriteBuffer:
    """Told by the transport when its buffer is full (64 KiB) and when it is empty
    again; counts what is written in between."""

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
        """The connection is lost; nothing is left to wait for."""
        self.flows.set()

    def add(self, size: int) -> int:
        """Bytes that wait, these included; 0 while the reader keeps up."""
        if not self.flows.is_set():
            self.waiting += size
        return self.waiting


class BoundedProtocol(WebSocketProtocol):
    """daphne's protocol, which hangs up on a reader that lets too much wait, and does
    not read further than the application has come."""

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
        if self.write_buffer and 0 < limit < self.write_buffer.add(len(payload)):
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
        """How many bytes the kernel has taken. Twisted first waits to hear that there
        is room, as there nearly always is: one more round of the event loop, and two
        more system calls, for each frame."""
        line = self.transport
        is_idle = isinstance(line, tcp.Server) and line.connected and not line.TLS
        if not is_idle or line.dataBuffer or line._tempDataLen:
            return 0
        written = line.writeSomeData(data)
        # A lost connection is noticed where the rest is written.
        return written if isinstance(written, int) else 0

    @property
    def is_flowing(self) -> bool:
        """Whether the reader keeps up with what it is sent."""
        return self.write_buffer is None or self.write_buffer.flows.is_set()

    async def drained(self) -> None:
        """Wait until the reader has taken what it was sent, or is gone."""
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
        # What one read has brought can hold thousands of messages.
        return self.reads and super().processData()

    def handled(self) -> None:
        """The application is done with one message."""
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
    """daphne's request, without the form that Twisted makes of its body for itself, in
    the event loop: of 48 MB it takes seconds. Django reads it in a thread."""

    write_buffer: WriteBuffer | None = None
    # Answered for longer than a page may take: its application has its own deadlines.
    takes_long = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._parsePOSTFormSubmission = False

    def process(self) -> Any:
        # What daphne would take from anyone as the beginning of all addresses; what is
        # no ASCII in it ends the request with an error (chatsite/asgi.py).
        self.requestHeaders.removeHeader(b"Daphne-Root-Path")
        return super().process()

    def check_timeouts(self) -> None:
        if not self.takes_long:
            super().check_timeouts()

    async def drained(self) -> bool:
        """Wait until the reader has taken what it was sent. False: it takes nothing, or
        is gone."""
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
        if self.write_buffer:
            self.unregisterProducer()
        super().finish()

    def connectionLost(self, reason: Any) -> None:  # noqa: N802
        if self.write_buffer:
            self.write_buffer.stopProducing()
        super().connectionLost(reason)


class BoundedServer(Server):
    """daphne's server, whose sockets can be waited for by the application, and which
    cancels its applications only when they have handed over what they hold."""

    hand_over: Callable[[], Awaitable[None]]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
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
        """An application that is cancelled closes no socket: its page would wait for
        the connection to break, and not learn that it may come again at once."""
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
            # Twisted says nothing about it, and the process ends in any case.
            logger.exception("process ends without handing over")
        await Deferred.fromFuture(loop.create_task(self._finish_requests()))
        # daphne's own method stops at the first connection without an application,
        # such as the request that a socket began as.
        for protocol, details in list(self.connections.items()):
            if "application_instance" not in details:
                del self.connections[protocol]
        await super().kill_all_applications()

    async def _finish_requests(self) -> None:
        """Wait for answers that are under way: a form that is cut off is a page of 502,
        as no proxy may send it twice, and its person does not know what became of it.
        """
        if answers := self._list_answers():
            await asyncio.wait(answers, timeout=REQUESTS_SECONDS)

    def _list_answers(self) -> list[asyncio.Future[None]]:
        """The applications of requests that are not done. Streams that take minutes end
        as sockets do."""
        found = (
            details.get("application_instance")
            for protocol, details in self.connections.items()
            if isinstance(protocol, UnreadRequest) and not protocol.takes_long
        )
        return [each for each in found if each is not None and not each.done()]


def install_backpressure(hand_over: Callable[[], Awaitable[None]]) -> None:
    """Let daphne's sockets be of this kind; before it opens its ports.

    `hand_over` is awaited when the process is to end."""
    BoundedServer.hand_over = staticmethod(hand_over)
    WebSocketFactory.protocol = BoundedProtocol
    http_protocol.WebRequest = UnreadRequest
    CommandLineInterface.server_class = BoundedServer
