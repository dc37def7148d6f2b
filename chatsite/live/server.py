"""The start and the end of a daphne process, which has no lifespan protocol.

Sweeping starts with the server. Before the process ends, its turns are handed back and
its sockets are asked to reconnect to another process.
"""

import asyncio
import gc
import logging
import os
import sys
import threading
from contextlib import suppress

from chatsite import database, fair_queue
from chatsite.llm import providers
from chatsite.ops import load
from chatsite.turns import runner

from . import watcher

logger = logging.getLogger(__name__)

# How long threads may go on when everything else has ended.
THREADS_SECONDS = 1.5


async def hand_over() -> None:
    try:
        await runner.hand_back()
    finally:
        await watcher.current_watcher().close_sockets()
        await providers.build.close()


def hook_into_daphne() -> None:
    """Install the hooks of daphne's reactor, if daphne runs this process."""
    if "daphne.server" not in sys.modules:
        return
    from twisted.internet import reactor

    from . import backpressure

    backpressure.install_backpressure(hand_over)
    fair_queue.install_fair_queue()

    def start_up() -> None:
        asyncio.get_event_loop().call_soon(_begin_process)

    reactor.callWhenRunning(start_up)
    reactor.addSystemEventTrigger("after", "shutdown", _end_soon)


def _begin_process() -> None:
    if not database.claim_file():
        logger.warning(
            "Another process serves this SQLite file already. Each page learns late "
            "what happens in the other process, and writes wait for each other. Stop "
            "one, or set DATABASE_URL and REDIS_URL to PostgreSQL and Redis."
        )
    runner.ensure_sweeping()
    load.watch_loop()
    # The first model takes most of a second to import and build; as part of the first
    # reply it would hold up everything that runs in this process. One that can't be
    # built is reported by the checks, and by each of its replies.
    with suppress(LookupError):
        providers.build(providers.default_model())
    # Modules imported by now stay; the collector need not look at them again.
    gc.freeze()


def _end_soon() -> None:
    """End the process after THREADS_SECONDS, whatever its threads do.

    A request that was under way waits in its thread for an event loop that has ended,
    and Python waits for the thread: such a process would never end.
    """
    timer = threading.Timer(THREADS_SECONDS, os._exit, [0])
    timer.daemon = True
    timer.start()
