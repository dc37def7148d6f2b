"""The table of links that show a conversation to everyone who has them."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from memory.models import Conversation


class Share(models.Model):
    """A read-only link to a conversation as it was when the link was made.

    link_contents.py has its contents. Without `conversation` there is no row: an erased
    conversation has no links.
    """

    conversation = models.ForeignKey(
        Conversation,
        models.CASCADE,
        related_name="shares",
        verbose_name=_("conversation"),
    )
    # 192 random bits, kept as they are: what the link opens is in the same database, so
    # a hash would protect nothing that its reader lacks, and the owner can copy the
    # link again.
    token = models.CharField(max_length=32, unique=True, editable=False)
    # The newest message that it shows.
    last_seq = models.PositiveIntegerField()
    # True if it also shows the context of each reply.
    with_view = models.BooleanField(_("with what the model saw"), default=False)
    # True if it also shows images; otherwise it has their names.
    with_images = models.BooleanField(_("with images"), default=False, db_default=False)
    # True if the contexts are shown without rules, and not as they were sent.
    without_rules = models.BooleanField(
        _("without rules"), default=False, db_default=False
    )
    # What its owner has chosen in the fields of apps, by their names.
    choices = models.JSONField(default=dict, db_default={})
    # By the database's clock, as the marks of messages are that it is compared with.
    created_at = models.DateTimeField(_("created at"), db_default=Now())
    expires_at = models.DateTimeField(_("expires at"))
    revoked_at = models.DateTimeField(_("revoked at"), null=True, blank=True)
    # Why staff have revoked it, for its owner to read; "": they have not.
    reason = models.CharField(
        _("reason"), max_length=200, blank=True, default="", db_default=""
    )
    opens = models.PositiveIntegerField(_("opens"), default=0)
    last_opened_at = models.DateTimeField(_("last opened at"), null=True, blank=True)

    class Meta:
        # Named before the app; existing databases keep it.
        db_table = "chat_share"
        default_permissions = ()
        permissions = [("revoke_links", "Can revoke links to conversations")]
        verbose_name = _("share link")
        verbose_name_plural = _("share links")

    def __str__(self) -> str:
        # Never the token: this goes into logs and lists.
        return f"{self._meta.verbose_name} {self.pk}"

    @property
    def may_be_copied(self) -> bool:
        """True if its owner and the site allow readers to copy what it shows."""
        return bool(settings.SHARE_GUESTS and self.choices.get("copy"))


class Guest(models.Model):
    """The temporary account of a reader who tries a copy."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="+"
    )
    # From 0: unique, so there are never more guests than slots.
    slot = models.PositiveSmallIntegerField(unique=True)
    expires_at = models.DateTimeField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"guest {self.pk}"
