"""Records of the review app: accesses, reviews and erasures."""

from typing import Any

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from chatsite import plugins
from memory.models import Conversation
from memory.models.history import History
from memory.models.user_key import nullable_user


class AppendOnly(History):
    """A row that is written once; the admin, the model and its queryset refuse more."""

    created_at = models.DateTimeField(_("when"), auto_now_add=True, db_index=True)

    class Meta(History.Meta):
        abstract = True
        ordering = ["-id"]


def list_staff_actions() -> list[tuple[str, Any]]:
    """Return the name and the label of each action of staff."""
    names = plugins.collect_names("staff_actions")
    return [*AccessEvent.StaffAction.choices, *names.items()]


class AccessEvent(AppendOnly):
    """An access of staff to a user's conversation, or an action on it.

    It outlives the conversation, so it has only its uuid.
    """

    class StaffAction(models.TextChoices):
        VIEW = "view", _("read")
        RESTORE = "restore", _("restored a version")
        REBUILD = "rebuild", _("rebuilt the summaries")
        REVIEW = "review", _("marked reviewed")
        PURGE = "purge", _("erased")
        CSV = "csv", _("downloaded a list")

    user = nullable_user(_("who"))
    # Kept when the account is gone.
    username = models.CharField(_("user name"), max_length=150, db_index=True)
    action = models.CharField(_("action"), max_length=7, choices=list_staff_actions)
    # Empty: a text that belongs to no conversation, such as the site's own prompt.
    conversation = models.UUIDField(_("conversation"), null=True, db_index=True)
    owner = nullable_user(_("owner"), related_name="staff_accesses")
    target = models.CharField(_("what"), max_length=100, blank=True)
    address = models.GenericIPAddressField(_("from"), null=True)

    class Meta(AppendOnly.Meta):
        verbose_name = _("access")
        verbose_name_plural = _("access log")

    def __str__(self) -> str:
        return f"{self.username}: {self.action} {str(self.conversation or '')[:8]}"


class Review(AppendOnly):
    """A reviewer has looked at a conversation as it was then."""

    conversation = models.ForeignKey(
        Conversation, models.CASCADE, related_name="reviews"
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    username = models.CharField(_("user name"), max_length=150)
    # The newest summary (0: none) and message at that time.
    version = models.PositiveIntegerField(_("version"))
    last_seq = models.PositiveIntegerField(_("last message"))
    # Of the conversation then: what the model sees has changed when it has grown.
    memory_version = models.PositiveIntegerField(_("state of the view"))
    note = models.TextField(_("note"), blank=True)

    class Meta(AppendOnly.Meta):
        verbose_name = _("review")
        verbose_name_plural = _("reviews")

    def __str__(self) -> str:
        return f"{self.username}, up to #{self.last_seq}"


class Tombstone(AppendOnly):
    """The record of an erased conversation, or of a user with all of theirs.

    It has numbers and a hash, no text and no name.
    """

    # Empty: of a whole account, whose number is the next value.
    conversation = models.UUIDField(_("conversation"), unique=True, null=True)
    account = models.PositiveBigIntegerField(_("account"), unique=True, null=True)
    conversations = models.PositiveIntegerField(_("conversations"), db_default=1)
    messages = models.PositiveIntegerField(_("messages"))
    summaries = models.PositiveIntegerField(_("summaries"))
    model_calls = models.PositiveIntegerField(_("model calls"))
    turns = models.PositiveIntegerField(_("turns"))
    # Of what was erased, to prove a copy: documented where it is computed.
    sha256 = models.CharField(max_length=64)
    begun_at = models.DateTimeField(_("begun"))
    user = nullable_user(_("erased by"))
    # Empty: by an operator on the command line.
    username = models.CharField(_("user name"), max_length=150, blank=True)
    reason = models.TextField(_("reason"), blank=True)

    class Meta(AppendOnly.Meta):
        verbose_name = _("tombstone")
        verbose_name_plural = _("tombstones")

    def __str__(self) -> str:
        what = self.conversation or f"account {self.account}"
        return f"{what}: {self.messages} messages"
