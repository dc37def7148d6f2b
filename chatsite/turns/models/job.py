"""The table of work that takes longer than a request may."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from memory.leases import Lease
from memory.models import Conversation

from .leased_row import lease_duration


class Job(models.Model):
    """Work that a user started and that may take longer than a request.

    The row has its place, its progress and its result. chatsite/jobs reads and writes
    it.
    """

    class State(models.TextChoices):
        QUEUED = "queued", _("Queued")
        RUNNING = "running", _("Running")
        DONE = "done", _("Done")
        FAILED = "failed", _("Failed")
        CANCELLED = "cancelled", _("Cancelled")

    UNFINISHED = (State.QUEUED, State.RUNNING)

    kind = models.CharField(max_length=12)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="jobs"
    )
    conversation = models.ForeignKey(
        Conversation, models.CASCADE, null=True, related_name="jobs"
    )
    # At most one unfinished job has it, such as "import:<user>".
    slot = models.CharField(max_length=60)
    # What it was asked to do, and what it has paid for so far: the next job of the
    # slot need not pay for that again.
    values = models.JSONField(default=dict)
    saved = models.JSONField(default=dict)
    state = models.CharField(max_length=9, choices=State, default=State.QUEUED)
    # The process that has what the job needs, which also keeps it alive as it waits.
    owner = models.CharField(max_length=36)
    lease_until = models.DateTimeField(null=True)
    # One of the few that a kind has on the whole site, while it runs.
    place = models.PositiveSmallIntegerField(null=True)
    cancel_requested_at = models.DateTimeField(null=True)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    result = models.JSONField(default=dict)
    error = models.TextField(blank=True, help_text=_("Shown to users."))
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["slot"],
                condition=Q(state__in=["queued", "running"]),
                name="job_slot",
            ),
            models.UniqueConstraint(fields=["kind", "place"], name="job_place"),
        ]
        indexes = [
            models.Index(
                fields=["lease_until"],
                condition=Q(state__in=["queued", "running"]),
                name="job_unfinished",
            ),
            models.Index(fields=["user", "kind", "-id"], name="job_latest"),
        ]

    def __str__(self) -> str:
        return f"Job {self.pk}: {self.kind} ({self.state})"

    @property
    def is_finished(self) -> bool:
        return self.state not in self.UNFINISHED


# It belongs from its beginning to the process that has queued it.
JOB_LEASE = Lease(
    Job, lease_duration, owned=Q(state__in=Job.UNFINISHED), waiting=Q(pk__in=())
)
