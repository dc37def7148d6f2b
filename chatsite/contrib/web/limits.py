"""Limits of one user on the web: calls in an hour, and calls at once.

Counted in this process alone: a call must cost next to nothing.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary, WeakValueDictionary

from django.conf import settings
from langchain_core.tools import ToolException

from chatsite.ops.pace import Pace

HOUR = 3_600.0
# Of all people together: each has what it fetches in memory.
AT_ONCE, AT_ONCE_PER_PERSON = 16, 4
pace = Pace(HOUR)


class _LoopSlots:
    """The slots of one event loop, of which a process of the site has one."""

    def __init__(self) -> None:
        self.every = asyncio.Semaphore(AT_ONCE)
        self.own: WeakValueDictionary[int, asyncio.Semaphore] = WeakValueDictionary()


_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopSlots] = WeakKeyDictionary()


@asynccontextmanager
async def enter_web(user_id: int) -> AsyncIterator[None]:
    """Count a call, and wait until it may begin. Raises ToolException."""
    _count_call(user_id)
    slots = _slots.setdefault(asyncio.get_running_loop(), _LoopSlots())
    own = slots.own.setdefault(user_id, asyncio.Semaphore(AT_ONCE_PER_PERSON))
    async with own, slots.every:
        yield


def _count_call(user_id: int) -> None:
    limit = settings.WEB_CALLS_PER_HOUR
    if seconds := pace.count_request(user_id, limit):
        raise ToolException(
            f"The user has used the {limit:,} calls of the web that they have in an "
            f"hour. The next one is possible in {max(1, round(seconds / 60))} min. "
            "Answer with what you have."
        )
