"""The execution state of one reply. The messages themselves are in memory.models."""

from collections.abc import Sequence
from typing import Any, Self

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from chatsite import database  # noqa: F401  (registers the lookup of UNFINISHED)
from memory.models import Conversation, Message, ModelCall
from memory.sql import prepared_rows

from .leased_row import LeasedRow

# Failed turns before the others. The values are in the SQL: an index over them is not
# used for parameters.
FAILING_FIRST = models.Func(
    "state",
    template="CASE WHEN %(expressions)s IN "
    "('failed', 'truncated', 'interrupted') THEN 0 ELSE 1 END",
    output_field=models.SmallIntegerField(),
).asc()

# An attempt with this or a higher number is the last one wherever its process ends: no
# client would get the answer of another.
ONLY_ATTEMPT = 1_000


class Turn(LeasedRow):
    """One user message and everything until its reply is final."""

    class State(models.TextChoices):
        QUEUED = "queued", _("Queued")
        RUNNING = "running", _("Running")
        # A call of a tool waits for consent: no process has the turn, and none may
        # claim it before the answer, which makes it queued again.
        WAITING = "waiting", _("Waiting")
        DONE = "done", _("Done")
        STOPPED = "stopped", _("Stopped")
        FAILED = "failed", _("Failed")
        TRUNCATED = "truncated", _("Truncated")
        INTERRUPTED = "interrupted", _("Interrupted")

    # Events of what ended with it, or as it was begun again: published with it, not
    # stored.
    also_published: Sequence[Any] = ()

    # False: as it ended, nothing of its conversation was due to be compacted.
    is_compaction_due = True

    # Asked for with `one_of` (chatsite/database.py): there are indexes over these.
    UNFINISHED = (State.QUEUED, State.RUNNING, State.WAITING)
    FAILING = (State.FAILED, State.TRUNCATED, State.INTERRUPTED)
    RETRYABLE = (State.STOPPED, State.FAILED, State.TRUNCATED, State.INTERRUPTED)

    # The index of the latest ones serves; another one keeps SQLite from turn_open.
    conversation = models.ForeignKey(
        Conversation, models.CASCADE, related_name="turns", db_index=False
    )
    # The message to answer: a user's, or a late result of a tool.
    user_message = models.ForeignKey(Message, models.CASCADE, related_name="turns")
    reply = models.OneToOneField(
        Message, models.CASCADE, null=True, blank=True, related_name="turn"
    )
    # The number the reply will have: taken together with the user message's, so that
    # a reply stands behind its question even when more messages were queued meanwhile.
    # A call of a tool, or its result, takes it and leaves the next one to the reply.
    reply_seq = models.PositiveIntegerField()
    # Numbers left free before the user message, for the turn before.
    room = models.PositiveSmallIntegerField(default=0, db_default=0)
    state = models.CharField(max_length=11, choices=State, default=State.QUEUED)
    # Only ever grows: pages ignore what comes of a lower one.
    attempt = models.PositiveIntegerField(default=0)
    # The attempts before the user last asked for another reply.
    attempts_before = models.PositiveIntegerField(default=0, db_default=0)
    text = models.TextField(
        blank=True, help_text=_("The reply as far as it was saved.")
    )
    # Which attempt saved the text: a new one leaves it there until it has its own.
    text_attempt = models.PositiveIntegerField(default=0, db_default=0)
    # The latest request made for this turn, written before it is sent.
    call = models.ForeignKey(ModelCall, models.SET_NULL, null=True, blank=True)
    model = models.CharField(max_length=100, blank=True)
    error = models.CharField(
        max_length=100, blank=True, help_text=_("Code of the error.")
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
                condition=Q(state__in=["queued", "running", "waiting"]),
                name="turn_unfinished",
            ),
            models.Index(
                fields=["conversation", "id"],
                condition=Q(state__in=["queued", "running", "waiting"]),
                name="turn_open",
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
        return f"{self._meta.verbose_name} {self.pk}: {self.get_state_display()}"

    @classmethod
    def clear_text(cls, conversation: Conversation, seq: int, **_: object) -> None:
        """Clear the saved text of the turn whose reply `seq` was deleted."""
        rows = cls.objects.filter(conversation=conversation, reply__seq=seq)
        rows.update(text="")

    def read_again(self) -> Self:
        """Return the turn with its reply as stored now, and the events of its end.

        Raises Turn.DoesNotExist.
        """
        for found in _read_with_reply(pk=self.pk):
            found.also_published = self.also_published
            return found
        raise Turn.DoesNotExist

    @property
    def may_have_rows(self) -> bool:
        """The turn may have stored messages besides its reply.

        Such are tool calls, or what it did before another reply was requested. Reads
        `user_message`.
        """
        return self.reply_seq > self.user_message.seq + 1


@prepared_rows()
def _read_with_reply(pk: Any) -> models.QuerySet[Turn]:
    return Turn.objects.filter(pk=pk).select_related("reply").order_by()


TURN_LEASE = Turn.make_lease()
