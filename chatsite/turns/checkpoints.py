"""Checkpoints of this process's replies, all in one statement and within a second.

They all save at the same moments of the machine's clock, so that fifty replies ask the
database once and not fifty times.
"""

import asyncio
from dataclasses import dataclass
from time import monotonic
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async
from django.db import DatabaseError

from memory.database import TRANSIENT_DB_ERRORS

from . import lifecycle

# A second, less the time that the statement takes.
CHECKPOINT_SECONDS = 0.9
# Those due at the same moment come some milliseconds after each other.
GATHER_SECONDS = 0.01


def next_at(*, is_first: bool = False) -> float:
    """Return when a reply saves next, by time.monotonic(): at the moment when all do.

    That is at most CHECKPOINT_SECONDS away. A reply that has just begun is not saved at
    once.
    """
    now = monotonic()
    together = (now // CHECKPOINT_SECONDS + 1) * CHECKPOINT_SECONDS
    if is_first and together - now < CHECKPOINT_SECONDS / 2:
        return now + CHECKPOINT_SECONDS
    return together


@dataclass(frozen=True, slots=True)
class _Checkpoint:
    claim: lifecycle.TurnClaim
    text: str
    saved: asyncio.Future[lifecycle.LeaseStatus]

    def settle(self, result: lifecycle.LeaseStatus | Exception) -> None:
        if self.saved.done():  # its reply has ended meanwhile
            return
        if isinstance(result, Exception):
            self.saved.set_exception(result)
        else:
            self.saved.set_result(result)


# The checkpoints that the next statement saves, and the tasks that send it, per event
# loop.
_gathered: WeakKeyDictionary[asyncio.AbstractEventLoop, list[_Checkpoint]] = (
    WeakKeyDictionary()
)
_writers: set[asyncio.Task[None]] = set()


async def save_checkpoint(
    claim: lifecycle.TurnClaim, text: str
) -> lifecycle.LeaseStatus:
    """Save the reply as lifecycle.checkpoint() does, together with the others due.

    A checkpoint that is cancelled before the statement is sent is not part of it.
    """
    loop = asyncio.get_running_loop()
    checkpoint = _Checkpoint(claim, text, loop.create_future())
    if gathered := _gathered.get(loop):
        gathered.append(checkpoint)
    else:
        _gathered[loop] = [checkpoint]
        writer = loop.create_task(_write_checkpoints(loop))
        _writers.add(writer)
        writer.add_done_callback(_writers.discard)
    return await checkpoint.saved


async def _write_checkpoints(loop: asyncio.AbstractEventLoop) -> None:
    await asyncio.sleep(GATHER_SECONDS)
    due = [each for each in _gathered.pop(loop) if not each.saved.done()]
    if not due:
        return
    try:
        results = await database_sync_to_async(_save_all)(due)
    except Exception as error:  # noqa: BLE001 - each reply raises it
        results = [error] * len(due)
    for each, result in zip(due, results, strict=True):
        each.settle(result)


def _save_all(due: list[_Checkpoint]) -> list[lifecycle.LeaseStatus | Exception]:
    """Save all replies in one statement, or else each on its own.

    Each is saved on its own where the statement did not find every lease as it should
    be, or the database refuses a value: none pays for another.
    """
    if len(due) > 1:
        try:
            if lifecycle.checkpoint_all({each.claim: each.text for each in due}):
                return [lifecycle.LeaseStatus.KEPT] * len(due)
        except TRANSIENT_DB_ERRORS as error:
            return [error] * len(due)
        except DatabaseError:
            pass
    results: list[lifecycle.LeaseStatus | Exception] = []
    for each in due:
        try:
            results.append(lifecycle.checkpoint(each.claim, each.text))
        except TRANSIENT_DB_ERRORS as error:
            # It is away: the others need not find that out one by one.
            return results + [error] * (len(due) - len(results))
        except Exception as error:  # noqa: BLE001 - its reply raises it
            results.append(error)
    return results
