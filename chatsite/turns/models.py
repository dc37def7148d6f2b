"""Turn: the execution state of one reply. What was said lives in memory.models.
Allowance and Presence: what a person has used up, and where their sockets are.
Preferences: what their new conversations begin with. Job: work of theirs that takes
longer than a request may.
"""

from datetime import timedelta

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from memory.leases import Lease
from memory.models import Conversation, Message, ModelCall

# What went wrong before what did not. Its values stand in the SQL: an index over them
# is not used for parameters.
FAILING_FIRST = models.Func(
    "state",
    template="CASE WHEN %(expressions)s IN "
    "('failed', 'truncated', 'interrupted') THEN 0 ELSE 1 END",
    output_field=models.SmallIntegerField(),
).asc()


def lease_duration() -> timedelta:
    return timedelta(seconds=settings.TURN_LEASE_SECONDS)


class Turn(models.Model):
    """One user message and everything until its reply is final."""

    class State(models.TextChoices):
        QUEUED = "queued", _("Queued")
        RUNNING = "running", _("Running")
        DONE = "done", _("Done")
        STOPPED = "stopped", _("Stopped")
        FAILED = "failed", _("Failed")
        TRUNCATED = "truncated", _("Truncated")
        INTERRUPTED = "interrupted", _("Interrupted")

    UNFINISHED = (State.QUEUED, State.RUNNING)
    RETRYABLE = (State.STOPPED, State.FAILED, State.TRUNCATED, State.INTERRUPTED)
    LEASE = Lease(
        lease_duration, owned=Q(state=State.RUNNING), waiting=Q(state=State.QUEUED)
    )

    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="turns")
    user_message = models.ForeignKey(Message, models.CASCADE, related_name="turns")
    reply = models.OneToOneField(
        Message, models.CASCADE, null=True, blank=True, related_name="turn"
    )
    # The number the reply will have: taken together with the user message's, so that
    # a reply stands behind its question even when more messages were queued meanwhile.
    reply_seq = models.PositiveIntegerField()
    state = models.CharField(max_length=11, choices=State, default=State.QUEUED)
    # Only ever grows: pages ignore what comes of a lower one.
    attempt = models.PositiveIntegerField(default=0)
    # How many there were before a person last asked for another reply.
    attempts_before = models.PositiveIntegerField(default=0, db_default=0)
    owner = models.CharField(max_length=36, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    text = models.TextField(
        blank=True, help_text=_("The reply as far as it was saved.")
    )
    # Which attempt saved the text: a new one leaves it there until it has its own.
    text_attempt = models.PositiveIntegerField(default=0, db_default=0)
    # The latest request made for this turn, written before it is sent.
    call = models.ForeignKey(ModelCall, models.SET_NULL, null=True, blank=True)
    model = models.CharField(max_length=100, blank=True)
    error = models.CharField(
        max_length=40, blank=True, help_text=_("Code of the error.")
    )
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["id"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["conversation"],
                condition=Q(state="running"),
                name="one_running_turn",
            ),
        ]
        indexes = [
            models.Index(
                fields=["state", "lease_until"],
                condition=Q(state__in=["queued", "running"]),
                name="turn_unfinished",
            ),
            models.Index(fields=["conversation", "-id"], name="turn_latest"),
            models.Index(
                fields=["-created_at"],
                condition=Q(state__in=["failed", "truncated", "interrupted"]),
                name="turn_failing",
            ),
            models.Index(
                FAILING_FIRST, models.F("id").desc(), name="turn_failing_first"
            ),
        ]

    def __str__(self) -> str:
        return f"Turn {self.pk} ({self.state})"

    @property
    def is_finished(self) -> bool:
        return self.state not in self.UNFINISHED


class Allowance(models.Model):
    """What one person has used of what the site allows; limits.py reads and writes it.

    Kept apart from conversations, so that deleting one gives nothing back.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        primary_key=True,
        related_name="allowance",
    )
    tokens_per_day = models.PositiveIntegerField(
        _("own tokens per day"),
        null=True,
        blank=True,
        help_text=_("Empty: the site's TOKENS_PER_DAY. 0: no limit."),
    )
    day = models.DateField(null=True, editable=False)
    tokens_used = models.PositiveBigIntegerField(default=0, editable=False)
    # When the next message, or conversation, would be on time if the person kept
    # exactly to the rate: who is further ahead than the burst has to wait.
    messages_at = models.DateTimeField(null=True, editable=False)
    conversations_at = models.DateTimeField(null=True, editable=False)
    summaries_at = models.DateTimeField(null=True, editable=False)

    def __str__(self) -> str:
        return f"Allowance of {self.user}"


class Presence(models.Model):
    """How many sockets of one person one process holds; counts until its lease ends."""

    process = models.CharField(max_length=32)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="presences"
    )
    sockets = models.PositiveIntegerField()
    lease_until = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "process"], name="one_presence_per_process"
            ),
        ]
        indexes = [
            models.Index(fields=["process"], name="presence_process"),
            models.Index(fields=["lease_until"], name="presence_lease"),
        ]

    def __str__(self) -> str:
        return f"{self.sockets} sockets of {self.user}"


class Preferences(models.Model):
    """What one person wants their new conversations to begin with."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        primary_key=True,
        related_name="preferences",
    )
    model = models.CharField(max_length=100, blank=True)
    preset = models.CharField(max_length=40, blank=True)

    class Meta:
        verbose_name_plural = "preferences"

    def __str__(self) -> str:
        return f"Preferences of {self.user}"


class Job(models.Model):
    """Work that a person started and that may take longer than a request: its place,
    how far it is and what came of it. jobs.py reads and writes it.
    """

    class State(models.TextChoices):
        QUEUED = "queued", _("Queued")
        RUNNING = "running", _("Running")
        DONE = "done", _("Done")
        FAILED = "failed", _("Failed")
        CANCELLED = "cancelled", _("Cancelled")

    UNFINISHED = (State.QUEUED, State.RUNNING)
    LEASE = Lease(lease_duration, owned=Q(state__in=UNFINISHED))

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
    error = models.TextField(blank=True, help_text=_("What people are told."))
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
