"""The rate limit of every request to a model beside replies, whatever it is for.

Compactions, proposals, experiments and titles pass it. It knows the quota and the pace
of the user who pays, and how many such requests there may be at once.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async
from django.conf import settings

from chatsite.protocol.errors import CommandError
from memory.compaction.compactor import RefusedError

from . import limits, model_access


class _UserSlots:
    """The requests of one event loop that are under way or wait for a place."""

    def __init__(self) -> None:
        self.taken: Counter[int | None] = Counter()
        # In the order in which they came.
        self.waiting: dict[asyncio.Future[None], None] = {}

    @asynccontextmanager
    async def take(self, key: int | None, limit: int) -> AsyncIterator[None]:
        """Hold one of `limit` places under this key; 0 = as many as are wanted."""
        while 0 < limit <= self.taken[key]:
            turn = asyncio.get_running_loop().create_future()
            self.waiting[turn] = None
            try:
                await turn
            finally:
                self.waiting.pop(turn, None)
        self.taken[key] += 1
        try:
            yield
        finally:
            self.taken[key] -= 1
            self.taken += Counter()  # forgets those with none
            for turn in self.waiting:
                if not turn.done():
                    turn.set_result(None)


_places: WeakKeyDictionary[asyncio.AbstractEventLoop, _UserSlots] = WeakKeyDictionary()
# After this long it is looked whether a model may be used meanwhile.
DENIED_SECONDS = 600.0
# No user has this key: the places of the whole process.
PROCESS = None


@asynccontextmanager
async def hold_place(payer: int, model: str) -> AsyncIterator[None]:
    """Hold a place for one request to `model` that `payer` pays for, and for its bill.

    Waits for the user's pace and for a place; a user's own places come first, so that
    one with a thousand requests leaves room for the others. Raises RefusedError when
    the tokens of the day are used up, or the user may not use the model.
    """
    places = _places.setdefault(asyncio.get_running_loop(), _UserSlots())
    async with places.take(payer, settings.SUMMARIES_PER_USER):
        await _wait_for_admission(payer, model)
        async with places.take(PROCESS, settings.SUMMARIES_AT_ONCE):
            yield


async def _wait_for_admission(payer: int, model: str) -> None:
    while True:
        try:
            await database_sync_to_async(_admit_request)(payer, model)
            return
        except CommandError as error:
            if error.code != "rate_limited":
                raise RefusedError(
                    error.code, error.retry_after or DENIED_SECONDS
                ) from None
            pause = error.retry_after or 1.0
        await asyncio.sleep(pause)


def _admit_request(payer: int, model: str) -> None:
    model_access.check_model(payer, model)
    limits.admit_summary(payer)
