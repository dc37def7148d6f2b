"""The base of tables whose rows one process at a time works on."""

from collections.abc import Sequence
from datetime import timedelta
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q

from memory.leases import Lease


def lease_duration() -> timedelta:
    return timedelta(seconds=settings.TURN_LEASE_SECONDS)


class LeasedRow(models.Model):
    """A row of which the process writes that holds its token and renews its lease."""

    # The states before the end, of which the subclass has a column.
    UNFINISHED: ClassVar[Sequence[str]]

    owner = models.CharField(max_length=36, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True

    @property
    def is_finished(self) -> bool:
        return self.state not in self.UNFINISHED

    @classmethod
    def make_lease(cls) -> Lease:
        """Return the lease of rows that wait as "queued" and are held as "running"."""
        is_held, waits = Q(state="running"), Q(state="queued")
        return Lease(cls, lease_duration, owned=is_held, waiting=waits)
