"""Each user's share of the two threads in which a process works for its sockets.

All sockets of a user take turns, one piece of work at a time, so that others wait for
one piece at most. And a user who has used seconds of processor time, there or for
pages, rests (chatsite/ops/processor_time.py), however many sockets they have.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async

from chatsite.fair_queue import for_drawing, working_for
from chatsite.ops import processor_time

T = TypeVar("T")

# Burst allowance of a user: pages that all reconnect.
BURST_SECONDS = 2.0
# The cost of a message that needs no work: it is read and refused.
MESSAGE_SECONDS = 0.002
# In the database thread, all sockets that are being opened count as one user.
OPENING = "opening"
# Users whose order is kept; they are forgotten in the order they were last busy.
MAX_PEOPLE = 10_000


class FairShare:
    """The turns of one user in this process."""

    def __init__(self, key: int | str) -> None:
        self._turn = asyncio.Lock()
        self._key = key
        # The session may not exist: made-up keys cost a client nothing.
        self._who = OPENING if isinstance(key, str) else key

    @property
    def is_spent(self) -> bool:
        return self._rest() > 0

    async def run(self, work: Callable[..., T], *args: Any) -> T:
        """Run work(*args) in the database thread when it is this user's turn."""
        return await self._run(database_sync_to_async(self._timed), work, *args)

    async def run_drawing(self, work: Callable[..., T], *args: Any) -> T:
        """Run work(*args), which only reads and renders, in the thread for drawing.

        So others need not wait for it to send a message.
        """
        return await self._run(for_drawing(self._timed), work, *args)

    async def _run(self, timed: Callable[..., Awaitable[T]], *work: Any) -> T:
        async with self._turn:
            if seconds := self._rest():
                await asyncio.sleep(seconds)
            with working_for(self._who):
                return await timed(*work)

    async def take_message(self) -> None:
        """Wait until the next message of this user may be handled, and charge for it.

        Messages do not take turns: all syncs that are requested while one is made
        become a single one.
        """
        await asyncio.sleep(self._rest())
        self._account.spend(MESSAGE_SECONDS)

    def _timed(self, work: Callable[..., T], *args: Any) -> T:
        with self._account.timed():
            return work(*args)

    @property
    def _account(self) -> processor_time.Account:
        return processor_time.account_of_user(self._key)

    def _rest(self) -> float:
        """Return the seconds until the user has some share again."""
        return self._account.rest(BURST_SECONDS)


_people: WeakKeyDictionary[
    asyncio.AbstractEventLoop, OrderedDict[int | str, FairShare]
] = WeakKeyDictionary()


def find_fair_share(key: int | str) -> FairShare:
    """Return the share of a user, or of a session, in the running event loop.

    A session stands here until its user is known: it opens one socket at a time.
    """
    people = _people.setdefault(asyncio.get_running_loop(), OrderedDict())
    share = people.setdefault(key, FairShare(key))
    people.move_to_end(key)
    if len(people) > MAX_PEOPLE:
        people.popitem(last=False)
    return share
