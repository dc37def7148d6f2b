"""What one person may ask of the web: calls in an hour, and how many at once. Counted
in this process alone: a call more has to cost next to nothing.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary, WeakValueDictionary

from django.conf import settings
from langchain_core.tools import ToolException

HOUR = 3_600.0
# Of all people together: each has what it fetches in memory.
AT_ONCE, AT_ONCE_PER_PERSON = 16, 4
# The people heard last; one who was forgotten begins again.
MOST_PEOPLE = 10_000

# By person, the time at which their next call would be on time.
_due: OrderedDict[int, float] = OrderedDict()


class _Places:
    """Of one event loop, of which a process of the site has one."""

    def __init__(self) -> None:
        self.every = asyncio.Semaphore(AT_ONCE)
        self.own: WeakValueDictionary[int, asyncio.Semaphore] = WeakValueDictionary()


_places: WeakKeyDictionary[asyncio.AbstractEventLoop, _Places] = WeakKeyDictionary()


@asynccontextmanager
async def enter_web(user_id: int) -> AsyncIterator[None]:
    """Count a call, and wait until it may begin. Raises ToolException."""
    _count_call(user_id)
    places = _places.setdefault(asyncio.get_running_loop(), _Places())
    own = places.own.setdefault(user_id, asyncio.Semaphore(AT_ONCE_PER_PERSON))
    async with own, places.every:
        yield


def _count_call(user_id: int) -> None:
    limit = settings.WEB_CALLS_PER_HOUR
    if limit <= 0:
        return
    now = time.monotonic()
    due = max(_due.get(user_id, now), now) + HOUR / limit
    # Not `due - now > HOUR`: rounded, an hour from now can be more.
    if due > now + HOUR + 0.001:
        minutes = max(1, round((due - now - HOUR) / 60))
        raise ToolException(
            f"The person has used the {limit:,} calls of the web that they have in an "
            f"hour. The next one is possible in {minutes} min. Answer with what you "
            "have."
        )
    _due[user_id] = due
    _due.move_to_end(user_id)
    while len(_due) > MOST_PEOPLE:
        _due.popitem(last=False)
