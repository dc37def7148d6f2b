"""Conversations and the state of their memory."""

import uuid
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memory.engine.exceptions import PolicyError
from memory.engine.policy import Policy


def validate_policy(value: dict[str, Any]) -> None:
    try:
        Policy.load(value)
    except PolicyError as error:
        raise ValidationError(error.render(gettext)) from error


class Conversation(models.Model):
    """One chat of one user, and the state of its memory."""

    class TitleSource(models.TextChoices):
        NONE = "", _("not set")
        AUTO = "auto", _("the site")
        USER = "user", _("a user")
        COPY = "copy", _("the conversation or file it was copied from")

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="conversations"
    )
    title = models.CharField(max_length=200, blank=True)
    title_set_by = models.CharField(
        max_length=4, choices=TitleSource, default=TitleSource.NONE, blank=True
    )
    # The numbers of the messages that the title was made of; None: not known, so it can
    # quote any of them.
    title_seqs = models.JSONField(null=True, blank=True, editable=False)
    # Empty: the site's own, like the model and the temperature.
    system_prompt = models.TextField(blank=True)
    model = models.CharField(max_length=100, blank=True)
    temperature = models.FloatField(
        null=True, blank=True, validators=[MinValueValidator(0), MaxValueValidator(2)]
    )
    policy = models.JSONField(default=dict, blank=True, validators=[validate_policy])
    # Names of the tools that its model may call.
    tools = models.JSONField(default=list, db_default=[], blank=True)
    # True if a late result starts a turn of its own; otherwise the next turn sends it
    # to the model.
    answers_late = models.BooleanField(default=False, db_default=False)
    pinned_at = models.DateTimeField(null=True, blank=True)
    archived_at = models.DateTimeField(null=True, blank=True)
    # Hidden on every page; the row is deleted when the time to undo it has passed.
    # While it is imported or erased: staging.HIDDEN, which can't be undone.
    deleted_at = models.DateTimeField(null=True, blank=True)
    # When a temporary conversation, which is not listed, is deleted, unless a page of
    # it is open by then (library.py).
    temporary_until = models.DateTimeField(null=True, blank=True, editable=False)
    # The token of the import that still writes it (staging.py).
    staged_by = models.CharField(max_length=36, null=True, blank=True)  # noqa: DJ001
    branched_from = models.ForeignKey(
        "self", models.SET_NULL, null=True, blank=True, related_name="branches"
    )
    branched_seq = models.PositiveIntegerField(null=True, blank=True)
    # A number that conversations shown as one have in common. Only an app uses it; for
    # conversations without it, pages and lists need no other query.
    tree = models.PositiveBigIntegerField(null=True, blank=True, editable=False)
    # The differences of the next request, by `variation` and `text`, until a turn uses
    # them: then `turn` and `round` name it. {} means none.
    next_request = models.JSONField(default=dict, db_default={}, blank=True)
    # The origin of an imported conversation, so that a second import is noticed.
    imported_from = models.CharField(max_length=200, null=True, blank=True)  # noqa: DJ001
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    # The next free message number. Advanced by one UPDATE, which is also the lock
    # that puts two senders in an order.
    next_seq = models.PositiveIntegerField(default=1)
    # Grows with every change of what the model sees (a compaction, an exclusion, an
    # edit); a compaction commits only if it still has the value the compaction was
    # planned on.
    memory_version = models.PositiveIntegerField(default=0)
    # The number of rules that are not dismissed; if 0, no request queries them.
    rule_count = models.PositiveSmallIntegerField(default=0, db_default=0)
    # The number of long files of messages; if 0, no request searches passages.
    long_files = models.PositiveIntegerField(default=0, db_default=0)
    # The provider reports token_overhead + token_ratio * estimate.
    token_ratio = models.FloatField(default=1.0)
    token_overhead = models.PositiveIntegerField(default=0)
    # The sums of the fit over all requests so far (memory/calibration.py).
    token_sums = models.JSONField(null=True, blank=True)
    # Versions of summaries that come back into force, as they are, when the changed
    # messages before them have been compacted again.
    set_aside = models.JSONField(null=True, blank=True)
    compaction_owner = models.CharField(max_length=36, blank=True)
    compaction_lease_until = models.DateTimeField(null=True, blank=True)
    compaction_failures = models.PositiveSmallIntegerField(default=0)
    compaction_retry_at = models.DateTimeField(null=True, blank=True)
    # When the compaction job should look again: after a turn, or when an idle or age
    # trigger can fire without one. Another process looks if this one ends.
    compaction_due_at = models.DateTimeField(null=True, blank=True, db_index=True)

    class Meta:
        ordering = ["-updated_at", "-id"]
        indexes = [
            models.Index(fields=["owner", "-updated_at"]),
            models.Index(
                fields=["deleted_at"],
                condition=Q(deleted_at__isnull=False),
                name="conversation_deleted",
            ),
            models.Index(
                fields=["temporary_until"],
                condition=Q(temporary_until__isnull=False),
                name="conversation_temporary",
            ),
        ]
        # Permissions of staff in the review.
        default_permissions = ()
        permissions = [
            ("view_metadata", "Can review who, when and how much, without any text"),
            ("read_content", "Can read texts and titles"),
            ("export_conversations", "Can export conversations"),
            ("purge_conversations", "Can erase conversations for good"),
        ]

    def __str__(self) -> str:
        # Never the title, which can quote a message: this goes into logs and lists.
        return gettext("Conversation %(id)s") % {"id": str(self.uuid)[:8]}

    @property
    def is_temporary(self) -> bool:
        return self.temporary_until is not None

    def get_policy(self) -> Policy:
        """Return the policy in force.

        An invalid stored one is replaced by the default, so that no reply fails;
        `policy_error` says why.
        """
        try:
            return Policy.load(self.policy)
        except PolicyError:
            return Policy()

    @property
    def policy_error(self) -> str:
        try:
            Policy.load(self.policy)
        except PolicyError as error:
            return " ".join(error.render(gettext).split())
        return ""
