"""Each person's share of the one thread in which a process works for its sockets.

All sockets of a person take turns, one piece of work at a time, so that others wait for
one piece at most. And a person who has had the thread for seconds rests, so that over
time no more than a share of it is theirs, however many sockets they have.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async
from django.conf import settings

T = TypeVar("T")

# What a person may have at once, before the share counts: pages that all reconnect.
BURST_SECONDS = 2.0
# One piece of work counts as no more: it may have waited for another user's lock.
MOST_SECONDS = 0.25
# What a message costs that needs no work: to be read and refused.
MESSAGE_SECONDS = 0.002
# People whose time is remembered; they are forgotten in the order they were last busy.
MAX_PEOPLE = 10_000


class Share:
    """One person's turns in this process."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._spent_until = 0.0  # when what was had so far is made up for

    @property
    def is_spent(self) -> bool:
        return self._rest() > 0

    async def run(self, work: Callable[..., T], *args: Any) -> T:
        """work(*args) in the database thread, when it is this person's turn."""
        async with self._turn:
            await asyncio.sleep(self._rest())
            return await database_sync_to_async(self._timed)(work, *args)

    async def take_message(self) -> None:
        """Wait until this person may be heard again. Not in turn: of the syncs that are
        asked for while one is made, only one is left to do."""
        await asyncio.sleep(self._rest())
        self._spend(MESSAGE_SECONDS)

    def _timed(self, work: Callable[..., T], *args: Any) -> T:
        started = monotonic()
        try:
            return work(*args)
        finally:
            self._spend(min(monotonic() - started, MOST_SECONDS))

    def _spend(self, seconds: float) -> None:
        percent = settings.SOCKET_SHARE_PER_USER
        if percent > 0:
            begin = max(self._spent_until, monotonic())
            self._spent_until = begin + seconds * 100 / percent

    def _rest(self) -> float:
        """Seconds until there is something left of the share."""
        percent = settings.SOCKET_SHARE_PER_USER
        if percent <= 0:
            return 0.0
        ahead = self._spent_until - monotonic()
        return max(0.0, ahead - BURST_SECONDS * 100 / percent)


_people: WeakKeyDictionary[asyncio.AbstractEventLoop, OrderedDict[int, Share]] = (
    WeakKeyDictionary()
)


def of(user_id: int) -> Share:
    """The person's share in the running event loop."""
    people = _people.setdefault(asyncio.get_running_loop(), OrderedDict())
    share = people.setdefault(user_id, Share())
    people.move_to_end(user_id)
    if len(people) > MAX_PEOPLE:
        people.popitem(last=False)
    return share
