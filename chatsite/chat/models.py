"""Turn: the execution state of one reply. What was said lives in memory.models."""

from django.db import models
from django.db.models import Q

from memory.models import Conversation, Message, ModelCall


class Turn(models.Model):
    """One user message and everything until its reply is final."""

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        STOPPED = "stopped"
        FAILED = "failed"
        TRUNCATED = "truncated"
        INTERRUPTED = "interrupted"

    UNFINISHED = (State.QUEUED, State.RUNNING)
    RETRYABLE = (State.STOPPED, State.FAILED, State.TRUNCATED, State.INTERRUPTED)

    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="turns")
    user_message = models.ForeignKey(Message, models.CASCADE, related_name="turns")
    reply = models.OneToOneField(
        Message, models.CASCADE, null=True, blank=True, related_name="turn"
    )
    # The number the reply will have: taken together with the user message's, so that
    # a reply stands behind its question even when more messages were queued meanwhile.
    reply_seq = models.PositiveIntegerField()
    state = models.CharField(max_length=11, choices=State, default=State.QUEUED)
    attempt = models.PositiveSmallIntegerField(default=0)
    owner = models.CharField(max_length=36, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    text = models.TextField(blank=True, help_text="The reply as far as it was saved.")
    # The latest request made for this turn, written before it is sent.
    call = models.ForeignKey(ModelCall, models.SET_NULL, null=True, blank=True)
    model = models.CharField(max_length=100, blank=True)
    error = models.CharField(max_length=40, blank=True, help_text="Code of the error.")
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["id"]
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
        ]

    def __str__(self) -> str:
        return f"Turn {self.pk} ({self.state})"

    @property
    def is_finished(self) -> bool:
        return self.state not in self.UNFINISHED
