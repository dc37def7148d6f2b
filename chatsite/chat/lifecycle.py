"""Ties the runner to the life of a daphne process, which has no lifespan protocol:
sweeping begins with the server, and its turns are handed back before it ends.
"""

import asyncio
import gc
import sys

from . import runner


def install() -> None:
    """Hook into daphne's reactor; does nothing under another server or a command."""
    if "daphne.server" not in sys.modules:
        return
    from twisted.internet import reactor
    from twisted.internet.defer import Deferred

    def shut_down() -> Deferred:
        loop = asyncio.get_event_loop()
        return Deferred.fromFuture(asyncio.ensure_future(runner.hand_back(), loop=loop))

    def start_up() -> None:
        asyncio.get_event_loop().call_soon(runner.ensure_sweeping)
        # What is imported by now stays; the collector need not look at it again.
        gc.freeze()

    reactor.callWhenRunning(start_up)
    reactor.addSystemEventTrigger("before", "shutdown", shut_down)
