"""The state of each call of a tool, and the files in results.

Requests and answers are messages of the transcript.
"""

import hashlib
import json
import re
import uuid
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from chatsite.turns.models import Turn
from memory.models import Conversation, Message, PrivateRow

# The beginning of web addresses: no others are links.
ADDRESS = re.compile(r"https?://[^\s/]", re.IGNORECASE)


def digest_of(name: str, arguments: Any) -> str:
    """SHA-256, in hex, of a tool's name and its arguments: what a consent is bound to.

    Equal arguments have one digest, whatever the order of their keys.
    """
    return hash_json([name, arguments], ensure_ascii=False)


def hash_json(value: Any, **options: Any) -> str:
    """SHA-256, in hex, of a value as json.dumps() writes it with these options."""
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), **options)
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


class ToolCall(models.Model):
    """One call of a tool, and how far it is."""

    class State(models.TextChoices):
        ASKED = "asked", _("Asked")
        # For the consent of a user.
        WAITING = "waiting", _("Waiting for consent")
        RUNNING = "running", _("Running")
        DONE = "done", _("Done")
        FAILED = "failed", _("Failed")
        # The tool answers after the turn.
        LATE = "late", _("Pending")
        CANCELLED = "cancelled", _("Cancelled")
        # Its process ended while it ran, so it may have run or not.
        UNKNOWN = "unknown", _("Unknown")

    # The states that the loop of its turn still has to answer.
    UNANSWERED = (State.ASKED, State.WAITING, State.RUNNING)
    UNFINISHED = (*UNANSWERED, State.LATE)
    # Fields with words of the conversation: hidden from staff who may not read it.
    TEXTS = ("call_id", "name", "arguments", "reason", "handle")

    conversation = models.ForeignKey(
        Conversation, models.CASCADE, related_name="tool_calls"
    )
    turn = models.ForeignKey(Turn, models.CASCADE, related_name="tool_calls")
    # The message that asked for it, and its place among that message's calls.
    request = models.ForeignKey(Message, models.CASCADE, related_name="calls_asked")
    place = models.PositiveSmallIntegerField()
    call_id = models.CharField(max_length=100)
    name = models.CharField(max_length=100)
    arguments = models.JSONField(default=dict)
    digest = models.CharField(max_length=64)
    state = models.CharField(max_length=9, choices=State, default=State.ASKED)
    # The owner of the turn's claim when the call began: the fence of its writes.
    owner = models.CharField(max_length=36, blank=True)
    idempotency_key = models.UUIDField(default=uuid.uuid4, editable=False)
    # The message that answers it in its place; the one that came after the turn.
    result = models.OneToOneField(
        Message, models.CASCADE, null=True, blank=True, related_name="call_answered"
    )
    late_result = models.OneToOneField(
        Message, models.CASCADE, null=True, blank=True, related_name="late_call"
    )
    # What a tool that answers later is asked with, and when next; of a cancelled call,
    # when the tool is notified.
    handle = models.JSONField(null=True, blank=True)
    deadline_at = models.DateTimeField(null=True, blank=True)
    next_look_at = models.DateTimeField(null=True, blank=True)
    # Of the question for consent: until when, and what the tool was then (consent.py);
    # and of its answer: by whom, when, and why not.
    expires_at = models.DateTimeField(null=True, blank=True)
    tool_digest = models.CharField(max_length=64, blank=True, db_default="")
    answered_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="tool_calls_answered",
    )
    answered_at = models.DateTimeField(null=True, blank=True)
    allowed = models.BooleanField(null=True, blank=True)
    reason = models.TextField(blank=True)
    error = models.CharField(max_length=40, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    # A reminder that came, and that the user has not looked at (reminders.py).
    is_unread = models.BooleanField(default=False, db_default=False)

    class Meta:
        # Named before the app; existing databases keep it.
        db_table = "chat_toolcall"
        ordering = ["id"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["request", "call_id", "place"], name="tool_call_unique"
            ),
        ]
        indexes = [
            # For the background job, which looks for few of many rows.
            models.Index(
                fields=["next_look_at"],
                condition=Q(next_look_at__isnull=False),
                name="tool_call_due",
            ),
            models.Index(
                fields=["expires_at"],
                condition=Q(state="waiting"),
                name="tool_call_waiting",
            ),
            models.Index(
                fields=["conversation"],
                condition=Q(is_unread=True),
                name="tool_call_unread",
            ),
        ]

    def __str__(self) -> str:
        return f"{self._meta.verbose_name} {self.pk}: {self.name}"

    def save(self, **options: Any) -> None:
        self.digest = self.digest or digest_of(self.name, self.arguments)
        super().save(**options)

    @property
    def outcome_name(self) -> str:
        """The state in words; a declined call has a word of its own."""
        if self.allowed is False and self.state == self.State.CANCELLED:
            return gettext("Declined")
        return self.get_state_display()

    @classmethod
    def of_message(
        cls, conversation: Conversation, seq: int
    ) -> models.QuerySet["ToolCall"]:
        """Return the calls that message `seq` asked for, or that it answers."""
        sides = ("request", "result", "late_result")
        is_side = Q(*((f"{side}__seq", seq) for side in sides), _connector=Q.OR)
        return cls.objects.filter(is_side, conversation=conversation)

    @classmethod
    def forget_message(cls, conversation: Conversation, seq: int, **_: object) -> None:
        """Delete what the rows of calls repeat of the deleted message `seq`.

        The reason of a no is a part of the result, too.
        """
        calls = cls.of_message(conversation, seq)
        calls.filter(request__seq=seq).update(arguments={}, digest="")
        calls.update(reason="")

    @property
    def is_finished(self) -> bool:
        return self.state not in self.UNFINISHED

    @property
    def ms(self) -> int | None:
        """The milliseconds that it ran, once it has ended."""
        if not (self.started_at and self.finished_at):
            return None
        return (self.finished_at - self.started_at) // timedelta(milliseconds=1)


class ResultFile(PrivateRow):
    """A file or an address in the result of a call, for users.

    The model has a note of it in the text, and it is deleted with that text. Without
    `data` and `url` it was too large to be stored.
    """

    conversation = models.ForeignKey(
        Conversation, models.CASCADE, related_name="result_files"
    )
    message = models.ForeignKey(Message, models.CASCADE, related_name="result_files")
    place = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=200, blank=True)
    title = models.CharField(max_length=200, blank=True)
    kind = models.CharField(max_length=130, blank=True)
    url = models.TextField(blank=True)
    size = models.PositiveBigIntegerField(null=True, blank=True)
    data = models.BinaryField(null=True, blank=True)
    # The number by which replies of the conversation cite a web page.
    source = models.PositiveIntegerField(null=True, blank=True)

    class Meta(PrivateRow.Meta):
        db_table = "chat_resultfile"
        constraints = [
            models.UniqueConstraint(
                fields=["message", "place"], name="result_file_place"
            ),
        ]
