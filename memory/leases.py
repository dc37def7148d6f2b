"""Leases: the right to work on a row for a while.

A lease is kept in the row itself, as a token of its owner and an end by the database's
clock, on which all processes agree.

When two processes claim a free row, one gets it, and the row is free again when its
owner has not renewed in time. A lease does not promise that the owner knows: a process
that sleeps through the end of its lease learns of it at its next renewal. So every
write names the owner, and one that lost the row changes nothing (fencing, see Martin
Kleppmann, "How to do distributed locking", 2016). Such tokens have to grow where the
storage does not know who holds the lock; here the row itself knows it.
"""

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Any, TypeVar

from django.db import IntegrityError, transaction
from django.db.models import Model, Q, QuerySet
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Now

from memory.database import TRANSIENT_DB_ERRORS, name_of

logger = logging.getLogger(__name__)

T = TypeVar("T")
# The first part of every token of this process.
PROCESS = uuid.uuid4().hex[:12]


class LostError(Exception):
    """The row was ended or erased, or another owner has it."""


class LeaseStatus(Enum):
    """The result of a renewal: still ours, asked to stop, or another owner's now."""

    KEPT = "kept"
    CANCELLED = "cancelled"
    LOST = "lost"


def new_owner() -> str:
    """Return a token for one claim.

    It is known to be this process's even if the claim's answer is lost.
    """
    return PROCESS + uuid.uuid4().hex[: 36 - len(PROCESS)]


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to work on a row, as long as its lease is renewed."""

    row_id: int
    owner: str


def acquire_slot(
    running: QuerySet[Any], places: int, take: Callable[[int], T]
) -> T | None:
    """Let `take` store the first of `places` numbers that no running row has.

    Return its result, or None if all are taken or another process was faster.
    """
    taken = set(running.values_list("place", flat=True))
    place = next((n for n in range(places) if n not in taken), None)
    if place is None:
        return None
    try:
        with transaction.atomic():
            return take(place)
    except IntegrityError:
        return None


async def work_under_lease(
    work: Awaitable[T], renew: Callable[[], Awaitable[object]], seconds: float
) -> T:
    """Return the result of the work, and renew the lease every so many seconds.

    Errors of `renew` end the work, unless the database was away: the lease may outlast
    that, and if not, the fence holds.
    """
    task = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait({task}, timeout=seconds))[0]:
            try:
                await renew()
            except TRANSIENT_DB_ERRORS as error:
                logger.warning("lease not renewed: %s", name_of(error))
        return task.result()
    finally:
        task.cancel()
        # The work has ended before its row is closed.
        await asyncio.wait({task})


@dataclass(frozen=True, slots=True)
class Lease:
    """The leases of one table: how long they last, and in which columns."""

    table: type[Model]
    duration: Callable[[], timedelta]
    until: str = "lease_until"
    owner: str = "owner"
    # Rows with an owner, and rows that wait for one (default: those without an end).
    owned: Q = Q()
    waiting: Q = Q()

    def new_expiry(self) -> CombinedExpression:
        return Now() + self.duration()

    def match_alive(self) -> Q:
        return self.owned & Q((f"{self.until}__gte", Now()))

    def match_expired(self) -> Q:
        return self.owned & Q((f"{self.until}__lt", Now()))

    def match_free(self) -> Q:
        return (self.waiting or Q((self.until, None))) | self.match_expired()

    def filter_held(self, claim: Claim) -> QuerySet[Any]:
        """Return the row while no other owner has it, also after the lease's end."""
        is_owner = Q((self.owner, claim.owner))
        return self.table._default_manager.filter(
            self.owned & is_owner, pk=claim.row_id
        )

    def filter_held_here(self) -> QuerySet[Any]:
        """Return the rows that this process has claimed."""
        is_here = Q((f"{self.owner}__startswith", PROCESS))
        return self.table._default_manager.filter(self.owned & is_here)

    def claim_row(self, rows: QuerySet[Any], owner: str, **values: Any) -> bool:
        """Claim the row if it is free, in one statement."""
        lease = {self.owner: owner, self.until: self.new_expiry()}
        return bool(rows.filter(self.match_free()).update(**lease, **values))

    def renew_row(self, held: QuerySet[Any], **values: Any) -> bool:
        """Renew the lease and write the values; return False if it was lost."""
        return bool(held.update(**{self.until: self.new_expiry()}, **values))

    def renew_unless_cancelled(self, held: QuerySet[Any], **values: Any) -> LeaseStatus:
        if self.renew_row(held.filter(cancel_requested_at=None), **values):
            return LeaseStatus.KEPT
        return self.why_refused(held)

    def why_refused(self, held: QuerySet[Any]) -> LeaseStatus:
        return LeaseStatus.CANCELLED if held.exists() else LeaseStatus.LOST

    def release_row(self, held: QuerySet[Any], **values: Any) -> int:
        return held.update(**{self.owner: "", self.until: None}, **values)
