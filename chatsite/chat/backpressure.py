"""daphne's sockets as the site needs them: those who do not read are cut off, and pages
can be asked to come again.

daphne takes whatever a socket is sent and keeps it in memory until the other end has
read it; here that has a limit per socket.
"""

import logging

from daphne.ws_protocol import WebSocketFactory, WebSocketProtocol
from django.conf import settings
from twisted.internet.interfaces import IPushProducer
from zope.interface import implementer

from . import metrics

logger = logging.getLogger(__name__)

# Service restart, try again later: autobahn lets only libraries say these.
COME_AGAIN = (1012, 1013)


@implementer(IPushProducer)
class Valve:
    """Told by the transport when its buffer is full (64 KiB) and when it is empty
    again; counts what is written in between."""

    def __init__(self) -> None:
        self.waiting: int | None = None

    def pauseProducing(self) -> None:  # noqa: N802
        if self.waiting is None:
            self.waiting = 0

    def resumeProducing(self) -> None:  # noqa: N802
        self.waiting = None

    def stopProducing(self) -> None:  # noqa: N802
        """The connection is lost; nothing is left to count."""

    def add(self, size: int) -> int:
        """Bytes that wait, these included; 0 while the reader keeps up."""
        if self.waiting is None:
            return 0
        self.waiting += size
        return self.waiting


class BoundedProtocol(WebSocketProtocol):
    """daphne's protocol, which hangs up on a reader that lets too much wait."""

    valve: Valve | None = None

    def onOpen(self) -> None:  # noqa: N802
        super().onOpen()
        self.valve = Valve()
        # The HTTP channel that took the handshake is still registered.
        self.unregisterProducer()
        self.registerProducer(self.valve, True)

    def sendMessage(self, payload: bytes, *args: object, **options: object) -> None:  # noqa: N802
        limit = settings.SOCKET_BUFFER_BYTES
        if self.valve and 0 < limit < self.valve.add(len(payload)):
            logger.warning("socket cut off: more than %d bytes wait for it", limit)
            metrics.SOCKETS_CUT.labels("slow_reader").inc()
            self.dropConnection(abort=True)
            return
        super().sendMessage(payload, *args, **options)

    def serverClose(self, code: int | None = None) -> None:  # noqa: N802
        if code in COME_AGAIN:
            self.sendCloseFrame(code=code)
        else:
            super().serverClose(code)


def install() -> None:
    """Let daphne's sockets be of this kind; before it opens its ports."""
    WebSocketFactory.protocol = BoundedProtocol
