"""The tables of the thread state: conversations, messages, summaries, model calls.

Nothing here knows a web page. Rows are written by transcript.py, folding.py and
context.py; the constraints below hold whoever writes.
"""

import uuid
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Q
from django.db.models.fields.json import KeyTextTransform
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from . import seals
from .engine.exceptions import PolicyError
from .engine.policy import Policy
from .history import History, HistoryQuerySet
from .seals import SealField
from .sql import ListLength

NEWEST = ["-created_at", "-id"]


def validate_policy(value: dict[str, Any]) -> None:
    try:
        Policy.load(value)
    except PolicyError as error:
        raise ValidationError(error.say(gettext)) from error


class Conversation(models.Model):
    """One chat of one person, and the counters that its memory hangs on."""

    class TitleSource(models.TextChoices):
        NONE = "", _("nobody")
        AUTO = "auto", _("the site")
        USER = "user", _("a person")

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="conversations"
    )
    title = models.CharField(max_length=200, blank=True)
    title_set_by = models.CharField(
        max_length=4, choices=TitleSource, default=TitleSource.NONE, blank=True
    )
    system_prompt = models.TextField(
        blank=True, help_text=_("Empty: the site's own system prompt.")
    )
    model = models.CharField(
        max_length=100, blank=True, help_text=_("Empty: the site's chat model.")
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
        # What staff may do; the desk asks for these alone.
        default_permissions = ()
        permissions = [
            ("view_metadata", "Can review who, when and how much, without any text"),
            ("read_content", "Can read texts and titles"),
            ("export_conversations", "Can export conversations"),
            ("purge_conversations", "Can erase conversations for good"),
        ]

    def __str__(self) -> str:
        # Never the title, which tells what was said: this goes into logs and lists.
        return f"Conversation {str(self.uuid)[:8]}"

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
            return " ".join(error.say(gettext).split())
        return ""


class Message(History):
    """One entry of the transcript. Its text never changes once it is written."""

    # Marks of what the model sees, and of where the message comes from.
    CHANGING = frozenset({"pinned_at", "excluded_at", "superseded_at", "imported_at"})
    ERASED: ClassVar = {"text": "", "tool_calls": [], "tokens": 0}

    class Role(models.TextChoices):
        USER = "user", _("User")
        ASSISTANT = "assistant", _("Assistant")
        TOOL = "tool", _("Tool")

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
    tokens = models.PositiveIntegerField(help_text=_("Estimated."))
    pinned_at = models.DateTimeField(null=True, blank=True)
    excluded_at = models.DateTimeField(null=True, blank=True)
    superseded_at = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(
        null=True, blank=True, help_text=_("Its text is gone, for good.")
    )
    imported_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text=_("It was written elsewhere: no request is known."),
    )
    created_at = models.DateTimeField(auto_now_add=True)
    seal = SealField(
        of=(
            *("conversation_id", "seq", "role", "text", "tool_calls", "tool_call_id"),
            *("deleted_at", "created_at"),
        )
    )

    class Meta:
        ordering = ["conversation", "seq"]
        default_permissions = ()
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

    @classmethod
    def check_change(cls, values: Mapping[str, Any]) -> None:
        gone = all(values.get(name) == value for name, value in cls.ERASED.items())
        if gone and values.get("deleted_at"):
            erased = {*cls.ERASED, "deleted_at"}
            values = {name: values[name] for name in values if name not in erased}
        super().check_change(values)

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
    terms = models.TextField(
        blank=True, help_text=_("Coded, in the order of the text.")
    )
    dates = models.TextField(blank=True, help_text=_("Coded words of the date."))

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"#{self.seq}"


class SummaryQuerySet(HistoryQuerySet):
    def update(self, **values: Any) -> int:
        self.model.check_change(values)
        if set(values) != {"status"}:
            return super().update(**values)
        return seals.restate(self, values["status"])


class Summary(History):
    """One version of what stands for older messages. Append-only.

    The ranges of a conversation's active summaries tile 1..cutoff without a gap or an
    overlap; the window is whatever comes after. Only `status` ever changes.
    """

    CHANGING = frozenset({"status", "status_seal"})

    class Status(models.TextChoices):
        ACTIVE = "active", _("Active")
        SUPERSEDED = "superseded", _("Superseded")
        STALE = "stale", _("Stale")
        FAILED = "failed", _("Failed")
        REJECTED = "rejected", _("Rejected")

    conversation = models.ForeignKey(
        Conversation, models.CASCADE, related_name="summaries"
    )
    version = models.PositiveIntegerField()
    level = models.PositiveSmallIntegerField(default=0)
    generation = models.PositiveSmallIntegerField(
        default=1, help_text=_("Of rewriting: 1 was made from the messages themselves.")
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
        help_text=_(
            "Facts of the text found in no message that it covers, and the like."
        ),
    )
    trigger = models.JSONField(
        default=dict, help_text=_("What set it off: kind, value, limit.")
    )
    # What staff look for, where an index finds it.
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
    preset = models.CharField(
        max_length=40, blank=True, help_text=_("Of the policy; empty: not known.")
    )
    policy_hash = models.CharField(max_length=64)
    prompt_hash = models.CharField(max_length=64, blank=True)
    model = models.CharField(max_length=100)
    tokens_in = models.PositiveIntegerField(
        default=0, help_text=_("Of the summariser.")
    )
    tokens_out = models.PositiveIntegerField(
        default=0, help_text=_("Of the summariser.")
    )
    tokens_before = models.PositiveIntegerField(
        default=0, help_text=_("Of the context.")
    )
    tokens_after = models.PositiveIntegerField(
        default=0, help_text=_("Of the context.")
    )
    ms = models.PositiveIntegerField(default=0)
    status = models.CharField(max_length=10, choices=Status)
    error = models.CharField(
        max_length=100, blank=True, help_text=_("Class of the error.")
    )
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        help_text=_("Empty: made automatically."),
    )
    created_at = models.DateTimeField(auto_now_add=True)
    seal = SealField(
        of=(
            *("conversation_id", "version", "level", "generation", "first_seq"),
            *("last_seq", "text", "structured", "flags", "trigger", "policy_hash"),
            *("prompt_hash", "model", "error", "created_at"),
        )
    )
    status_seal = SealField(of=("seal", "status"), renews=True)

    objects = SummaryQuerySet.as_manager()

    class Meta:
        ordering = ["conversation", "version"]
        default_permissions = ()
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
            # Enough to see whether the ranges in force follow on each other.
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
            update_fields = {*update_fields, "status_seal"}
        super().save(update_fields=update_fields, **options)

    @property
    def has_older(self) -> bool:
        """Whether it took the place of others, without asking the database."""
        was_text = self.trigger.get("kind") in ("edit", "restore")
        return was_text or self.level > 0 or self.generation > 1


class Prompt(History):
    """A text that is not part of any conversation but was sent with one.

    Kept by its hash, so that what was sent for an old reply can be rebuilt after the
    system prompt or the wording around the summaries has changed.
    """

    sha256 = models.CharField(max_length=64, primary_key=True)
    text = models.TextField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.sha256[:12]


class ModelCall(History):
    """One request to a model: the bill, the audit trail and the right pane in one.

    `refs` says by reference what was sent, `sha256` proves a rebuilt list to be it.
    """

    LINKS: ClassVar = ("message", "message_id", "summary", "summary_id")
    # What is known once the model has answered.
    CHANGING = frozenset(
        {
            *("message", "summary", "tokens_input", "tokens_cached", "tokens_output"),
            *("first_token_ms", "total_ms", "attempts", "error"),
        }
    )

    class Purpose(models.TextChoices):
        REPLY = "reply", _("Reply")
        SUMMARY = "summary", _("Summary")
        TITLE = "title", _("Title")

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
        max_length=100, blank=True, help_text=_("Class of the error.")
    )
    created_at = models.DateTimeField(auto_now_add=True)
    seal = SealField(
        of=(
            *("conversation_id", "purpose", "refs", "sha256", "model"),
            *("tokens_estimated", "created_at"),
        )
    )

    class Meta:
        ordering = ["-created_at", "-id"]
        default_permissions = ()
        indexes = [
            models.Index(fields=["conversation", "purpose", "-created_at"]),
            models.Index(fields=NEWEST, name="call_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.purpose} by {self.model}"

    @classmethod
    def check_change(cls, values: Mapping[str, Any]) -> None:
        super().check_change(values)
        if any(values.get(name, True) is None for name in cls.LINKS):
            raise TypeError("ModelCall rows are append-only: what it made stays.")
