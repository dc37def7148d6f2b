"""The number of open sockets of each user, over all processes.

Every process records its own, under a lease, so that those of a dead process stop
counting.
"""

from collections.abc import Mapping
from datetime import timedelta

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import Q, Sum
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from chatsite.protocol.errors import CommandError
from chatsite.turns import limits
from chatsite.turns.models import Presence
from memory.leases import PROCESS, Lease

PRESENCE_LEASE = Lease(Presence, lambda: timedelta(seconds=30), owner="process")


def enter_presence(user_id: int, sockets: int) -> None:
    """Record how many sockets of the user this process holds, with the new one.

    Raises CommandError when that is one too many.
    """
    limit = settings.SOCKETS_PER_USER
    if limit <= 0:
        return
    with transaction.atomic():
        limits.lock_allowance(user_id)
        elsewhere = Presence.objects.filter(PRESENCE_LEASE.match_alive(), user=user_id)
        elsewhere = elsewhere.exclude(process=PROCESS).aggregate(n=Sum("sockets"))["n"]
        if (elsewhere or 0) + sockets > limit:
            words = _("You have %(limit)s pages open already. Close some, then reload.")
            raise CommandError("too_many_sockets", words % {"limit": f"{limit:,}"})
        _write_presence({user_id: sockets})


def leave_presence(user_id: int, sockets: int) -> None:
    """Record how many sockets are left after one has closed."""
    rows = Presence.objects.filter(user=user_id, process=PROCESS)
    if sockets:
        rows.update(sockets=sockets)
    else:
        rows.delete()


def renew_presence(sockets: Mapping[int, int]) -> None:
    """Prolong this process's lease on its sockets, given by user."""
    mine = Presence.objects.filter(process=PROCESS)
    if settings.SOCKETS_PER_USER > 0:
        PRESENCE_LEASE.renew_row(mine)
    is_dead = Q(lease_until__lt=Now() - 2 * PRESENCE_LEASE.duration())
    rows = Presence.objects.filter(is_dead | Q(process=PROCESS))
    found = list(rows.values_list("process", "user_id", "sockets"))
    written = {user: count for process, user, count in found if process == PROCESS}
    if settings.SOCKETS_PER_USER > 0 and written != sockets:
        # Others took this process for dead, or a change could not be written.
        mine.exclude(user__in=sockets).delete()
        # Users whose account is deleted are about to be disconnected.
        people = get_user_model().objects.filter(pk__in=sockets)
        ids = people.values_list("pk", flat=True)
        _write_presence({user_id: sockets[user_id] for user_id in ids})
    if len(found) > len(written):
        Presence.objects.filter(is_dead).delete()


def forget_presence() -> None:
    """Delete the rows of this process, which ends.

    Its sockets will open in other processes, and must not count twice.
    """
    Presence.objects.filter(process=PROCESS).delete()


def _write_presence(sockets: Mapping[int, int]) -> None:
    Presence.objects.bulk_create(
        [
            Presence(
                process=PROCESS,
                user_id=user,
                sockets=count,
                lease_until=PRESENCE_LEASE.new_expiry(),
            )
            for user, count in sockets.items()
        ],
        update_conflicts=True,
        unique_fields=["user", "process"],
        update_fields=["sockets", "lease_until"],
    )
