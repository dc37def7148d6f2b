"""Rows of a table as work for server processes.

A row is claimed under a lease, renewed, cancelled, ended once, handed back, and taken
over from a process that died. The app decides which row comes next, what its work is
and what else its end writes.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from channels.db import database_sync_to_async
from django.conf import settings
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from chatsite.turns import runner
from memory.leases import (
    Claim,
    Lease,
    LeaseStatus,
    LostError,
    new_owner,
    work_under_lease,
)

T = TypeVar("T")
QUEUED, RUNNING = "queued", "running"
RENEW_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Worker:
    """The worker of one table's rows.

    Each write is one statement, fenced by the token of the row's owner or by the state
    in which the row was found.
    """

    lease: Lease
    # The attempts after which no process tries again. None: only the process that has
    # queued a row can do its work.
    most_attempts: Callable[[], int] | None = None
    # The state and the error of a row that was cancelled, and of one that was given up.
    cancelled: tuple[str, str] = ("stopped", "")
    given_up: tuple[str, str] = ("failed", "interrupted")
    # What else changes in a row that is no longer worked on.
    freed: Mapping[str, Any] = field(default_factory=dict)

    def claim_row(
        self, rows: QuerySet[Any], row_id: int, **values: Any
    ) -> Claim | None:
        """Claim the row for its next attempt.

        Returns None if it is not among `rows`, not free, or one for end_left().
        """
        claim = Claim(row_id, new_owner())
        begun = {"state": RUNNING, "attempt": F("attempt") + 1, **values}
        rows = rows.filter(pk=row_id).exclude(self._is_over())
        taken = self.lease.claim_row(rows, claim.owner, **begun)
        return claim if taken else None

    def renew_claim(self, claim: Claim, **values: Any) -> LeaseStatus:
        """Renew the lease and write the values, unless the row was cancelled."""
        return self.lease.renew_unless_cancelled(
            self.lease.filter_held(claim), **values
        )

    async def work_under_claim(
        self,
        claim: Claim,
        work: Awaitable[T],
        cancel: Callable[[], object] = lambda: None,
        note: Callable[[], dict[str, Any]] = dict,
    ) -> T:
        """Renew the lease until the work is done; return the result of the work.

        Each renewal writes the values that `note` returns. If the row was cancelled,
        `cancel` is called and may raise to end the work. Raises LostError.
        """
        held = self.lease.filter_held(claim)

        async def renew() -> None:
            status = await database_sync_to_async(self.renew_claim)(claim, **note())
            if status is LeaseStatus.CANCELLED:
                cancel()
                # The work goes on for a while: a call that costs money is completed.
                await database_sync_to_async(self.lease.renew_row)(held, **note())
            if status is LeaseStatus.LOST:
                raise LostError

        seconds = min(RENEW_SECONDS, settings.TURN_LEASE_SECONDS / 5)
        return await work_under_lease(work, renew, seconds)

    def cancel_rows(self, rows: QuerySet[Any]) -> int:
        """End the rows that wait, and request the end of the others.

        Returns the number of rows that have ended.
        """
        # In this order: a process may take a row in between.
        ended = self.end_rows(rows.filter(self.lease.waiting), *self.cancelled)
        rows.filter(self.lease.owned).update(cancel_requested_at=Now())
        return ended

    def finish_row(
        self, claim: Claim, state: str, error: str = "", values: Mapping[str, Any] = {}
    ) -> bool:
        """End the claimed row; return False if it was no longer held."""
        return bool(
            self.end_rows(self.lease.filter_held(claim), state, error, **values)
        )

    def end_rows(
        self, rows: QuerySet[Any], state: str, error: str = "", **values: Any
    ) -> int:
        """End all of the rows in their present state; return their number."""
        ended = {"lease_until": None, "finished_at": Now(), **self.freed}
        return rows.update(state=state, error=error, **ended, **values)

    def end_left(self) -> list[Any]:
        """End and return the rows of dead processes that none may take over."""
        free = self.lease.table._default_manager.filter(self.lease.match_free())
        rows, ended = free.filter(self._is_over()), []
        for row in rows:
            how = self.cancelled if row.cancel_requested_at else self.given_up
            if self.end_rows(rows.filter(pk=row.pk), *how):
                ended.append(row)
        return ended

    def _is_over(self) -> Q:
        if self.most_attempts is None:
            return Q()
        is_worn = Q(state=RUNNING, attempt__gte=self.most_attempts())
        return is_worn | Q(cancel_requested_at__isnull=False)

    def release_rows(self) -> None:
        """Hand the rows of this process back before it ends, without their attempt."""
        again = {"state": QUEUED, "attempt": F("attempt") - 1, **self.freed}
        self.lease.release_row(self.lease.filter_held_here(), **again)


async def start_waiting(
    claim_next: Callable[[], T | None], run: Callable[[T], Awaitable[object]]
) -> None:
    """Work on all waiting rows, each in a separate task."""
    while claim := await database_sync_to_async(claim_next)():
        if not runner.spawn_task(run(claim)):
            return
