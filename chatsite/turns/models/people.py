"""The tables of users: their usage, their sockets and their preferences."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class Allowance(models.Model):
    """The use that one user has made of the site's limits, for limits.py.

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
    # When the next message, or conversation, would be on time if the user kept
    # exactly to the rate: a user further ahead than the burst has to wait.
    # Existing databases keep the first names of the columns.
    next_message_at = models.DateTimeField(
        null=True, editable=False, db_column="messages_at"
    )
    next_conversation_at = models.DateTimeField(
        null=True, editable=False, db_column="conversations_at"
    )
    next_summary_at = models.DateTimeField(
        null=True, editable=False, db_column="summaries_at"
    )

    def __str__(self) -> str:
        return f"{self._meta.verbose_name}: {self.user}"


class Presence(models.Model):
    """The number of one user's sockets in one process; counts until its lease ends."""

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
    """The settings that a user's new conversations begin with.

    Also how Enter works, and the user's time zone.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        primary_key=True,
        related_name="preferences",
    )
    model = models.CharField(max_length=100, blank=True)
    preset = models.CharField(max_length=40, blank=True)
    # Enter starts a new line; Ctrl or Cmd with Enter sends the message.
    enter_breaks_line = models.BooleanField(default=False, db_default=False)
    # IANA name, as the browser gave it last; "" = not known. For tools.
    time_zone = models.CharField(
        max_length=64, blank=True, default="", db_default="", editable=False
    )
    # What becomes of rules that are stated: a value of the policy's setting.
    rules = models.CharField(max_length=5, blank=True, default="", db_default="")
    # The user's own list, one a line, and whether new conversations begin with it.
    own_rules = models.TextField(blank=True, default="", db_default="")
    with_own_rules = models.BooleanField(default=False, db_default=False)
    # What becomes of facts about the user, as in the policy's setting.
    facts = models.CharField(max_length=5, blank=True, default="", db_default="")

    class Meta:
        verbose_name_plural = "preferences"

    def __str__(self) -> str:
        return f"Preferences of {self.user}"
