"""The limits of a process with more work than it can do.

It works on a limited number of requests at once, and measures the delay of its event
loop.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from contextlib import ExitStack
from typing import Any
from weakref import WeakValueDictionary

from django.conf import settings

from chatsite import metrics

from . import open_paths
from .entrances import Slot, list_starts, read_session_key
from .open_paths import find_secret

# These must answer above all when everything else waits.
FOR_MACHINES = list_starts(Slot.FREE)
# After this the user has given up and would not see the answer.
WAIT_SECONDS = 10.0
SAMPLE_SECONDS = 0.5
# In the scope of a request that has waited in vain (chatsite/ops/unavailable.py).
TOO_BUSY = "windowpane.too_busy"
# In the scope of one that has a place; see leave_place().
LEAVE = "windowpane.leave"
# In the scope of one whose body was larger than its entrance takes, and was not read.
TOO_LARGE = "windowpane.too_large"

Scope = dict[str, Any]
Application = Callable[[Scope, Any, Any], Awaitable[None]]


def limit_requests(
    application: Application, limit: int, *, under: tuple[str, ...] = ("/",)
) -> Application:
    """Let `limit` HTTP requests below these paths be worked on at once.

    Others wait in their order; those that have waited for WAIT_SECONDS are answered
    with 503 and Retry-After.

    Each request has a thread and a database connection of its own. Without a limit,
    many at once would leave replies neither time nor a connection.
    """
    places = asyncio.Semaphore(limit)

    async def limited(scope: Scope, receive: Any, send: Any) -> None:
        path = scope["path"]
        is_free = path in FOR_MACHINES or TOO_BUSY in scope
        if is_free or not path.startswith(under):
            await application(scope, receive, send)
            return
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await places.acquire()
        except TimeoutError:
            metrics.REQUESTS_REFUSED.inc()
            await application({**scope, TOO_BUSY: True}, receive, send)
            return
        place = ExitStack()  # to close it again does nothing
        place.callback(leave_place, scope)  # one in a narrower queue before this one
        place.callback(places.release)

        async def send_on(message: dict[str, Any]) -> None:
            # What follows is a download at its reader's pace.
            if message["type"] == "http.response.start":
                place.close()
            await send(message)

        with place:
            await application({**scope, LEAVE: place.close}, receive, send_on)

    return limited


def leave_place(scope: Scope) -> None:
    """Let others have the place of this request.

    The request waits in a queue of its own from now on: requests in that queue would
    otherwise keep all pages from all users. The work that is left for it afterwards has
    to be short.
    """
    if leave := scope.get(LEAVE):
        leave()


def watch_loop() -> None:
    """Observe every SAMPLE_SECONDS the delay of the event loop.

    Each word of a reply waits as long in this process.
    """
    loop = asyncio.get_running_loop()

    def sample(due: float) -> None:
        metrics.LOOP_DELAY.observe(max(0.0, loop.time() - due))
        due = loop.time() + SAMPLE_SECONDS
        loop.call_at(due, sample, due)

    sample(loop.time())


def keep_room(application: Application, limit: int) -> Application:
    """Limit requests by limit_requests(), with smaller limits for some kinds.

    Strangers who read open pages get a quarter: they wait for one another, and people
    who are signed in don't wait for them. Of that quarter one address gets half at
    most, so that readers of other addresses find a place. Another quarter is for logins
    and sign-ups: passwords are hashed one at a time. One browser has a quarter at most,
    too: threads that compute for it take turns with the one that sends words.
    """
    part = max(1, limit // 4)
    limited = limit_requests(application, limit)
    for under in (open_paths.list_open(), list_starts(Slot.PASSWORD)):
        limited = limit_requests(limited, part, under=under)
    limited = limit_each(limited, max(2, part), session_of)
    part = max(1, part // 2)
    return limit_each(limited, part, lambda scope: find_secret(scope["path"]))


def session_of(scope: Scope) -> str:
    """Return the session that a request names; "" without one.

    Open pages and static files read no session. Whether the session exists is not
    looked up here.
    """
    if scope["path"].startswith((*open_paths.list_open(), settings.STATIC_URL)):
        return ""
    return read_session_key(scope["headers"])


def limit_each(
    application: Application, limit: int, key_of: Callable[[Scope], Hashable]
) -> Application:
    """Limit the requests of each key by limit_requests().

    A request waits among those of its key before it asks for one of the places of all,
    so it keeps no place from others.
    """
    # Each is kept for as long as requests hold it.
    queues: WeakValueDictionary[Hashable, Application] = WeakValueDictionary()

    async def limited(scope: Scope, receive: Any, send: Any) -> None:
        key = key_of(scope)
        enter = application
        if key and not (enter := queues.get(key)):
            enter = queues[key] = limit_requests(application, limit)
        await enter(scope, receive, send)

    return limited
