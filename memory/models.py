"""The tables of the thread state: conversations, messages, summaries, model calls.

Nothing here knows a web page. Rows are written by transcript.py, folding.py and
context.py; the constraints below hold whoever writes.
"""

import uuid
from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Q

from .engine.exceptions import PolicyError
from .engine.policy import Policy


def validate_policy(value: dict[str, Any]) -> None:
    try:
        Policy.load(value)
    except PolicyError as error:
        raise ValidationError(str(error)) from error


class Conversation(models.Model):
    """One chat of one person, and the counters that its memory hangs on."""

    class TitleSource(models.TextChoices):
        NONE = "", "nobody"
        AUTO = "auto", "the site"
        USER = "user", "a person"

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="conversations"
    )
    title = models.CharField(max_length=200, blank=True)
    title_set_by = models.CharField(
        max_length=4, choices=TitleSource, default=TitleSource.NONE, blank=True
    )
    system_prompt = models.TextField(
        blank=True, help_text="Empty: the site's own system prompt."
    )
    model = models.CharField(
        max_length=100, blank=True, help_text="Empty: the site's chat model."
    )
    policy = models.JSONField(default=dict, blank=True, validators=[validate_policy])
    pinned_at = models.DateTimeField(null=True, blank=True)
    archived_at = models.DateTimeField(null=True, blank=True)
    # Gone from every page; the row itself goes when the time to undo it has passed.
    deleted_at = models.DateTimeField(null=True, blank=True)
    branched_from = models.ForeignKey(
        "self", models.SET_NULL, null=True, blank=True, related_name="branches"
    )
    branched_seq = models.PositiveIntegerField(null=True, blank=True)
    # Where an imported one comes from, so that a second import is noticed.
    imported_from = models.CharField(max_length=200, null=True, blank=True)  # noqa: DJ001
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    # The next free message number. Advanced by one UPDATE, which is also the lock
    # that puts two senders in an order.
    next_seq = models.PositiveIntegerField(default=1)
    # Grows with every change of what the model sees (a fold, an exclusion, an edit);
    # a fold commits only if it still has the value the fold was planned on.
    memory_version = models.PositiveIntegerField(default=0)
    # Reported / estimated prompt tokens, as a running mean.
    token_ratio = models.FloatField(default=1.0)
    # Versions of summaries that come back into force, as they are, when the changed
    # messages before them have been folded again.
    set_aside = models.JSONField(null=True, blank=True)
    fold_owner = models.CharField(max_length=36, blank=True)
    fold_lease_until = models.DateTimeField(null=True, blank=True)
    fold_failures = models.PositiveSmallIntegerField(default=0)
    fold_retry_at = models.DateTimeField(null=True, blank=True)
    # When the fold job should look again: after a turn, or when an idle or age trigger
    # can fire without one. It outlives the process that was to look.
    fold_due_at = models.DateTimeField(null=True, blank=True, db_index=True)

    class Meta:
        ordering = ["-updated_at", "-id"]
        indexes = [
            models.Index(fields=["owner", "-updated_at"]),
            models.Index(
                fields=["deleted_at"],
                condition=Q(deleted_at__isnull=False),
                name="conversation_deleted",
            ),
        ]

    def __str__(self) -> str:
        return self.title or f"Conversation {self.uuid}"

    def get_policy(self) -> Policy:
        """The policy in force: in place of a stored one that is not valid the default
        one, as no reply may fail for it; `policy_error` says why."""
        try:
            return Policy.load(self.policy)
        except PolicyError:
            return Policy()

    @property
    def policy_error(self) -> str:
        try:
            Policy.load(self.policy)
        except PolicyError as error:
            return " ".join(str(error).split())
        return ""


class Message(models.Model):
    """One entry of the transcript. Its text never changes once it is written."""

    class Role(models.TextChoices):
        USER = "user"
        ASSISTANT = "assistant"
        TOOL = "tool"

    conversation = models.ForeignKey(
        Conversation, models.CASCADE, related_name="messages"
    )
    seq = models.PositiveIntegerField()
    role = models.CharField(max_length=9, choices=Role)
    text = models.TextField(blank=True)
    tool_calls = models.JSONField(default=list, blank=True)
    tool_call_id = models.CharField(max_length=100, blank=True)
    # Chosen by the client, so that a message sent twice is stored once.
    client_id = models.CharField(max_length=64, null=True, blank=True)  # noqa: DJ001
    tokens = models.PositiveIntegerField(help_text="Estimated.")
    pinned_at = models.DateTimeField(null=True, blank=True)
    excluded_at = models.DateTimeField(null=True, blank=True)
    superseded_at = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(
        null=True, blank=True, help_text="Its text is gone, for good."
    )
    imported_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="It was written elsewhere: no request is known.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["conversation", "seq"]
        indexes = [
            # Every context asks for the pinned ones, of which there are few.
            models.Index(
                fields=["conversation", "seq"],
                condition=Q(pinned_at__isnull=False),
                name="message_pinned",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["conversation", "seq"], name="message_seq_unique"
            ),
            models.UniqueConstraint(
                fields=["conversation", "client_id"], name="message_client_id_unique"
            ),
            models.CheckConstraint(condition=Q(seq__gte=1), name="message_seq_from_1"),
        ]

    def __str__(self) -> str:
        return f"#{self.seq} {self.role}"


class RecallEntry(models.Model):
    """What the search index holds of one message; written by recall.py alone.

    The database's own text index over it is made in a migration: FTS5 for SQLite, GIN
    for PostgreSQL.
    """

    message = models.OneToOneField(
        Message, models.CASCADE, primary_key=True, related_name="recall_entry"
    )
    seq = models.PositiveIntegerField()
    terms = models.TextField(blank=True, help_text="Coded, in the order of the text.")
    dates = models.TextField(blank=True, help_text="Coded words of the date.")

    def __str__(self) -> str:
        return f"#{self.seq}"


class AppendOnlyQuerySet(models.QuerySet):
    def update(self, **values: Any) -> int:
        if set(values) != {"status"}:
            raise TypeError("Summaries are append-only; only their status changes.")
        return super().update(**values)

    def delete(self) -> tuple[int, dict[str, int]]:
        raise TypeError("Summaries are append-only; delete the conversation instead.")


class Summary(models.Model):
    """One version of what stands for older messages. Append-only.

    The ranges of a conversation's active summaries tile 1..cutoff without a gap or an
    overlap; the window is whatever comes after. Only `status` ever changes.
    """

    class Status(models.TextChoices):
        ACTIVE = "active"
        SUPERSEDED = "superseded"
        STALE = "stale"
        FAILED = "failed"
        REJECTED = "rejected"

    conversation = models.ForeignKey(
        Conversation, models.CASCADE, related_name="summaries"
    )
    version = models.PositiveIntegerField()
    level = models.PositiveSmallIntegerField(default=0)
    generation = models.PositiveSmallIntegerField(
        default=1, help_text="Of rewriting: 1 was made from the messages themselves."
    )
    first_seq = models.PositiveIntegerField()
    last_seq = models.PositiveIntegerField()
    folded_from = models.ManyToManyField(
        "self", symmetrical=False, related_name="folded_into", blank=True
    )
    text = models.TextField(blank=True)
    structured = models.JSONField(null=True, blank=True)
    flags = models.JSONField(
        default=dict,
        blank=True,
        help_text="Facts of the text found in no message that it covers, and the like.",
    )
    trigger = models.JSONField(
        default=dict, help_text="What set it off: kind, value, limit."
    )
    policy_hash = models.CharField(max_length=64)
    prompt_hash = models.CharField(max_length=64, blank=True)
    model = models.CharField(max_length=100)
    tokens_in = models.PositiveIntegerField(default=0, help_text="Of the summariser.")
    tokens_out = models.PositiveIntegerField(default=0, help_text="Of the summariser.")
    tokens_before = models.PositiveIntegerField(default=0, help_text="Of the context.")
    tokens_after = models.PositiveIntegerField(default=0, help_text="Of the context.")
    ms = models.PositiveIntegerField(default=0)
    status = models.CharField(max_length=10, choices=Status)
    error = models.CharField(
        max_length=100, blank=True, help_text="Class of the error."
    )
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        help_text="Empty: made automatically.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = AppendOnlyQuerySet.as_manager()

    class Meta:
        ordering = ["conversation", "version"]
        verbose_name_plural = "summaries"
        indexes = [
            models.Index(fields=["conversation", "status", "first_seq"]),
            models.Index(fields=["-created_at"]),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["conversation", "version"], name="summary_version_unique"
            ),
            models.CheckConstraint(
                condition=Q(first_seq__gte=1, last_seq__gte=F("first_seq")),
                name="summary_range",
            ),
        ]

    def __str__(self) -> str:
        return f"v{self.version} of #{self.first_seq}–#{self.last_seq}"

    def save(
        self, *, update_fields: Iterable[str] | None = None, **kwargs: Any
    ) -> None:
        if self.pk and set(update_fields or ()) != {"status"}:
            raise TypeError("Summaries are append-only; only their status changes.")
        super().save(update_fields=update_fields, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        raise TypeError("Summaries are append-only; delete the conversation instead.")

    @property
    def has_older(self) -> bool:
        """Whether it took the place of others, without asking the database."""
        was_text = self.trigger.get("kind") in ("edit", "restore")
        return was_text or self.level > 0 or self.generation > 1


class Prompt(models.Model):
    """A text that is not part of any conversation but was sent with one.

    Kept by its hash, so that what was sent for an old reply can be rebuilt after the
    system prompt or the wording around the summaries has changed.
    """

    sha256 = models.CharField(max_length=64, primary_key=True)
    text = models.TextField()

    def __str__(self) -> str:
        return self.sha256[:12]


class ModelCall(models.Model):
    """One request to a model: the bill, the audit trail and the right pane in one.

    `refs` says by reference what was sent, `sha256` proves a rebuilt list to be it.
    """

    class Purpose(models.TextChoices):
        REPLY = "reply"
        SUMMARY = "summary"
        TITLE = "title"

    conversation = models.ForeignKey(
        Conversation, models.CASCADE, related_name="model_calls"
    )
    purpose = models.CharField(max_length=7, choices=Purpose)
    message = models.ForeignKey(
        Message, models.CASCADE, null=True, blank=True, related_name="model_calls"
    )
    summary = models.ForeignKey(
        Summary, models.CASCADE, null=True, blank=True, related_name="model_calls"
    )
    refs = models.JSONField(default=dict)
    sha256 = models.CharField(max_length=64)
    model = models.CharField(max_length=100)
    tokens_estimated = models.PositiveIntegerField()
    # Reported by the provider; empty when it reported nothing.
    tokens_input = models.PositiveIntegerField(null=True, blank=True)
    tokens_cached = models.PositiveIntegerField(null=True, blank=True)
    tokens_output = models.PositiveIntegerField(null=True, blank=True)
    first_token_ms = models.PositiveIntegerField(null=True, blank=True)
    total_ms = models.PositiveIntegerField(default=0)
    attempts = models.PositiveSmallIntegerField(default=1)
    error = models.CharField(
        max_length=100, blank=True, help_text="Class of the error."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [models.Index(fields=["conversation", "purpose", "-created_at"])]

    def __str__(self) -> str:
        return f"{self.purpose} by {self.model}"
