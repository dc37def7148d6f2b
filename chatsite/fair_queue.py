"""Fair scheduling: the work of one user does not wait for all the work of another.

A process has one thread for the database and one for its event loop. In both, users
take turns: after each piece of work of one user, each of the others gets one piece
done, however many pieces that user has queued.
"""

import asyncio
import sys
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from queue import SimpleQueue
from threading import Lock
from time import thread_time
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from asgiref.sync import SyncToAsync
from channels.db import database_sync_to_async

from memory.engine.summaries.summarizer import Checks

T = TypeVar("T")

# A thread that computes lets another one go on after so long. sqlite3 gives the
# interpreter away at each row and takes it back: with 5 ms, a query of many rows
# waits long for streams; with 20 µs, a word of a reply costs a tenth more.
SWITCH_SECONDS = 0.0005

# The number of a user, or another key that identifies the owner of the work. None: the
# process itself, or an owner that is not known yet.
work_owner: ContextVar[Hashable] = ContextVar("work_owner", default=None)


@contextmanager
def working_for(who: Hashable) -> Iterator[None]:
    before = work_owner.set(who)
    try:
        yield
    finally:
        work_owner.reset(before)


class FairQueue:
    """A work queue of a thread: round robin over users, each with their work in order.

    Has as much of SimpleQueue as ThreadPoolExecutor needs.
    """

    def __init__(self) -> None:
        self._circle: OrderedDict[Hashable, deque[Any]] = OrderedDict()
        self._served: Hashable = None
        self._lock = Lock()
        # One for each piece of work: the thread waits for these.
        self._tokens: SimpleQueue[None] = SimpleQueue()

    def put(self, work: Any) -> None:
        """Add work of the user in whose context this is called."""
        with self._lock:
            self._circle.setdefault(work_owner.get(), deque()).append(work)
        self._tokens.put(None)

    def get(self, block: bool = True) -> Any:
        self._tokens.get(block)
        with self._lock:
            # Only now: users who came while that work was done are before its user.
            if self._served in self._circle:
                self._circle.move_to_end(self._served)
            self._served = next(iter(self._circle))
            waiting = self._circle[self._served]
            work = waiting.popleft()
            if not waiting:
                del self._circle[self._served]
        return work

    def get_nowait(self) -> Any:
        return self.get(block=False)


def make_fair_thread() -> ThreadPoolExecutor:
    """One thread that works off a FairQueue."""
    thread = ThreadPoolExecutor(max_workers=1)
    thread._work_queue = FairQueue()
    return thread


class FragmentThread:
    """The thread that renders fragments, which may take longer than all other work.

    None: the database thread renders them.
    """

    thread: ThreadPoolExecutor | None = None


def for_drawing(work: Callable[..., T]) -> Callable[..., Awaitable[T]]:
    thread = FragmentThread.thread
    return database_sync_to_async(work, thread_sensitive=not thread, executor=thread)


def install_fair_queue() -> None:
    """Make the thread fair in which database_sync_to_async() does its work.

    Called before that thread has any work: a second thread would have a second
    connection.
    """
    SyncToAsync.single_thread_executor = make_fair_thread()
    FragmentThread.thread = make_fair_thread()
    Checks.thread = make_fair_thread()
    sys.setswitchinterval(SWITCH_SECONDS)


# Long pieces of work of one user take an eighth of the loop's time, which is enough to
# read 3,000 tokens a second.
OTHERS_SHARE = 7.0

_turns: WeakKeyDictionary[
    asyncio.AbstractEventLoop, WeakValueDictionary[Hashable, asyncio.Lock]
] = WeakKeyDictionary()


@asynccontextmanager
async def loop_turn() -> AsyncIterator[None]:
    """Limit long pieces of work of the event loop to one at a time for each user.

    Others get OTHERS_SHARE times as long after it.
    """
    turns = _turns.setdefault(asyncio.get_running_loop(), WeakValueDictionary())
    async with turns.setdefault(work_owner.get(), asyncio.Lock()):
        begun = thread_time()
        yield
        await asyncio.sleep(OTHERS_SHARE * (thread_time() - begun))
