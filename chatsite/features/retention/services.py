"""The rows that are too old, and their deletion in batches.

Each batch has a transaction of its own, so that other users do not wait long. Any
process may run any batch.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session
from django.db.models import F, Model, Q, QuerySet
from django.db.models.expressions import Combinable
from django.db.models.functions import Now
from django.utils import timezone

from chatsite.database import read_clock
from chatsite.features.tree.listing import note_restored
from chatsite.review.models import AccessEvent, Tombstone
from memory import library
from memory.models import Conversation

from .models import RetentionRun

# Rows of one transaction: other users of SQLite cannot write meanwhile.
BATCH = 100
# The hours of the site's time zone in which a run begins.
NIGHT = range(2, 5)

Find = Callable[[Combinable], QuerySet]


@dataclass(frozen=True, slots=True)
class OldRows:
    """Rows that have an age: the setting of how old they get, and what to do then."""

    # The column of a run that counts them.
    name: str
    # "": the rows say themselves when they have ended.
    setting: str
    find: Find
    remove: Callable[[QuerySet], int]

    def find_old(self) -> QuerySet:
        """Return the old rows by the database's clock.

        So a process whose clock is wrong deletes nothing.
        """
        days = getattr(settings, self.setting) if self.setting else 0
        if self.setting and not days:
            return self.find(Now()).none()
        return self.find(Now() - timedelta(days=days))


def _find_conversations(before: Combinable) -> QuerySet[Conversation]:
    """Return the conversations that were not used since, by the owner's list.

    Pinned ones are kept, and temporary ones and unfinished imports have rules of their
    own.
    """
    is_kept = Q(pinned_at__isnull=False) | Q(temporary_until__isnull=False)
    rows = Conversation.objects.filter(updated_at__lt=before, deleted_at=None)
    return rows.filter(staged_by=None).exclude(is_kept)


def _delete_conversations(rows: QuerySet) -> int:
    """Delete them as their owners do, some days ahead.

    Until then no page shows them, the purge waits, and restore_deleted() brings them
    back.
    """
    if days := settings.RETENTION_UNDO_DAYS:
        return rows.update(deleted_at=Now() + timedelta(days=days))
    return rows.update(deleted_at=Now() - library.UNDO - timedelta(seconds=1))


def restore_deleted() -> int:
    """Restore the conversations that retention deleted and that are not erased yet.

    Return their number.
    """
    rows = Conversation.objects.filter(deleted_at__gt=Now())
    found = list(rows.only("uuid", "tree"))
    for start in range(0, len(found), BATCH):
        batch = found[start : start + BATCH]
        library.restore_rows(batch)
        note_restored(batch)
    return len(found)


def _delete_rows(rows: QuerySet) -> int:
    # A plain one: the queryset of rows that are history refuses it.
    old = QuerySet(rows.model).filter(pk__in=rows.values_list("pk"))
    return old._raw_delete(rows.db)


def _delete_sessions(rows: QuerySet) -> int:
    """Delete sessions with the rows of apps that belong to them."""
    keys = [*rows.values_list("pk", flat=True)]
    deleted = Session.objects.filter(pk__in=keys).delete()
    return deleted[1].get(Session._meta.label, 0)


def _find_older(model: type[Model], column: str, before: Combinable) -> QuerySet:
    return QuerySet(model).filter(**{f"{column}__lt": before})


def _make_kind(name: str, setting: str, model: type[Model], column: str) -> OldRows:
    return OldRows(name, setting, partial(_find_older, model, column), _delete_rows)


KINDS = (
    OldRows(
        "conversations", "RETENTION_DAYS", _find_conversations, _delete_conversations
    ),
    OldRows(
        "sessions", "", partial(_find_older, Session, "expire_date"), _delete_sessions
    ),
    *(
        _make_kind("logins", "RETENTION_LOGIN_DAYS", model, "attempt_time")
        for model in (AccessAttempt, AccessFailureLog, AccessLog)
    ),
    _make_kind("accesses", "RETENTION_LOG_DAYS", AccessEvent, "created_at"),
    _make_kind("accesses", "RETENTION_LOG_DAYS", LogEntry, "action_time"),
    _make_kind("records", "RETENTION_RECORD_DAYS", Tombstone, "created_at"),
)


def count_old() -> dict[str, int]:
    """Return how many rows a run would delete now, by the columns of a run."""
    counts: dict[str, int] = {}
    for kind in KINDS:
        counts[kind.name] = counts.get(kind.name, 0) + kind.find_old().count()
    return counts


def begin_run() -> RetentionRun:
    """Return the run of this day, begun again if it has ended."""
    today = timezone.localtime(read_clock()).date()
    run, is_new = RetentionRun.objects.get_or_create(day=today)
    if not is_new:
        RetentionRun.objects.filter(pk=run.pk).update(finished_at=None)
    return run


def run_step() -> bool:
    """Delete one batch, in the night or where a run has not ended; whether to go on."""
    run = RetentionRun.objects.filter(finished_at=None).order_by("day").first()
    if run is None:
        run = _begin_nightly_run()
    return run is not None and delete_batch(run)


def _begin_nightly_run() -> RetentionRun | None:
    now = timezone.localtime(read_clock())
    if now.hour not in NIGHT:
        return None
    run, is_new = RetentionRun.objects.get_or_create(day=now.date())
    return run if is_new else None


def delete_batch(run: RetentionRun) -> bool:
    """Delete at most BATCH rows of the first kind with old ones.

    Return whether there were any. A run without old rows has ended.
    """
    own = RetentionRun.objects.filter(pk=run.pk)
    for kind in KINDS:
        # They are looked for outside of the transaction that deletes them, and again
        # in it: a conversation that was used meanwhile stays.
        keys = list(kind.find_old().order_by().values_list("pk", flat=True)[:BATCH])
        if keys:
            count = kind.remove(kind.find_old().filter(pk__in=keys))
            own.update(**{kind.name: F(kind.name) + count})
            return True
    own.update(finished_at=Now())
    return False
