"""The versions of a conversation's summaries."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.fields.json import KeyTextTransform
from django.utils.translation import gettext_lazy as _

from memory.integrity import signatures
from memory.integrity.signatures import SignatureField
from memory.sql import ListLength

from .conversation import Conversation
from .history import NEWEST, History, HistoryQuerySet


class SummaryQuerySet(HistoryQuerySet):
    def update(self, **values: Any) -> int:
        self.model.check_change(values)
        if set(values) != {"status"}:
            return super().update(**values)
        return signatures.change_status(self, values["status"])


class Summary(History):
    """One version of a summary of older messages. Append-only.

    It can also record that the messages have left the window without a summary. The
    ranges of a conversation's active summaries tile 1..cutoff without a gap or an
    overlap; the window comes after. Only `status` changes, but the texts are erased
    with any message of the range that is deleted.
    """

    CHANGING = frozenset({"status", "status_signature"})
    # The values of a version after a message that it covers was deleted.
    ERASED: ClassVar = {"text": "", "structured": None, "flags": {}, "status": "erased"}

    class Status(models.TextChoices):
        ACTIVE = "active", _("current")
        SUPERSEDED = "superseded", _("replaced")
        STALE = "stale", _("out of date")
        ERASED = "erased", _("erased")
        FAILED = "failed", _("failed")
        REJECTED = "rejected", _("rejected")

    conversation = models.ForeignKey(
        Conversation, models.CASCADE, related_name="summaries"
    )
    version = models.PositiveIntegerField()
    level = models.PositiveSmallIntegerField(default=0)
    # 1: made from the messages themselves, not from another summary.
    generation = models.PositiveSmallIntegerField(default=1)
    first_seq = models.PositiveIntegerField()
    last_seq = models.PositiveIntegerField()
    folded_from = models.ManyToManyField(
        "self", symmetrical=False, related_name="folded_into", blank=True
    )
    text = models.TextField(blank=True)
    structured = models.JSONField(null=True, blank=True)
    # What the checks found: facts that are in no message, gaps.
    flags = models.JSONField(default=dict, blank=True)
    # The kind of the condition that was met, its value and its limit.
    trigger = models.JSONField(default=dict)
    # Generated columns for the filters of staff, with indexes.
    trigger_kind = models.GeneratedField(
        expression=KeyTextTransform("kind", "trigger"),
        output_field=models.TextField(null=True),
        db_persist=True,
    )
    unsupported = models.GeneratedField(
        expression=ListLength("flags", key="unsupported"),
        output_field=models.IntegerField(null=True),
        db_persist=True,
    )
    preset = models.CharField(max_length=40, blank=True)
    policy_hash = models.CharField(max_length=64)
    prompt_hash = models.CharField(max_length=64, blank=True)
    model = models.CharField(max_length=100)
    # Of the summariser, and of the context.
    tokens_in = models.PositiveIntegerField(default=0)
    tokens_out = models.PositiveIntegerField(default=0)
    tokens_before = models.PositiveIntegerField(default=0)
    tokens_after = models.PositiveIntegerField(default=0)
    ms = models.PositiveIntegerField(default=0)
    status = models.CharField(max_length=10, choices=Status)
    error = models.CharField(max_length=100, blank=True)
    # None: made automatically.
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True
    )
    created_at = models.DateTimeField(auto_now_add=True)
    signature = SignatureField(
        of=(
            *("conversation_id", "version", "level", "generation", "first_seq"),
            *("last_seq", "text", "structured", "flags", "trigger", "policy_hash"),
            *("prompt_hash", "model", "error", "created_at"),
        )
    )
    status_signature = SignatureField(of=("signature", "status"), renews=True)

    objects = SummaryQuerySet.as_manager()

    class Meta(History.Meta):
        ordering = ["conversation", "version"]
        verbose_name_plural = "summaries"
        indexes = [
            models.Index(fields=["conversation", "status", "first_seq"]),
            # Newest first in every list, with one filter or none.
            models.Index(fields=NEWEST, name="summary_newest"),
            models.Index(fields=["status", *NEWEST], name="summary_by_status"),
            models.Index(fields=["trigger_kind", *NEWEST], name="summary_by_trigger"),
            models.Index(fields=["level", *NEWEST], name="summary_by_level"),
            models.Index(fields=["preset", *NEWEST], name="summary_by_preset"),
            models.Index(
                fields=NEWEST,
                condition=Q(unsupported__isnull=False),
                name="summary_unsupported",
            ),
            models.Index(
                fields=NEWEST, condition=Q(generation__gt=1), name="summary_rewritten"
            ),
            models.Index(
                fields=NEWEST, condition=Q(level__gte=4), name="summary_high_level"
            ),
            # A covering index to check that the active ranges are consecutive.
            models.Index(
                fields=["conversation", "first_seq", "last_seq"],
                condition=Q(status="active"),
                name="summary_in_force",
            ),
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
        self, *, update_fields: Iterable[str] | None = None, **options: Any
    ) -> None:
        if update_fields is not None and "status" in update_fields:
            update_fields = {*update_fields, "status_signature"}
        super().save(update_fields=update_fields, **options)

    @classmethod
    def check_change(cls, values: Mapping[str, Any]) -> None:
        if values != cls.ERASED:
            super().check_change(values)

    @property
    def is_trimmed(self) -> bool:
        """True if its messages have left the window without a summary.

        No model wrote anything about them.
        """
        has_words = self.model or self.text
        return not has_words and self.status != Summary.Status.ERASED

    @property
    def is_by_hand(self) -> bool:
        """True if a user wrote its words, and no model."""
        return bool(self.text) and not self.model

    @property
    def written_at(self) -> datetime:
        """The time when its words were written.

        Words that a user kept, though messages were hidden or shown since, are older
        than the version.
        """
        since = self.flags.get("written_at")
        return datetime.fromisoformat(since[0]) if since else self.created_at

    @property
    def has_older(self) -> bool:
        """True if it replaced others; answered without a query."""
        was_text = self.trigger.get("kind") in ("edit", "restore")
        return was_text or self.level > 0 or self.generation > 1
