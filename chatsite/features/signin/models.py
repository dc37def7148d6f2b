"""Links that let a user in or prove an address."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy


class MailedLink(models.Model):
    """A link that works once, until a time.

    It leads to a new password, to a new e-mail address, or to an account that does not
    exist yet.
    """

    class LinkKind(models.TextChoices):
        RESET = "reset"
        EMAIL = "email"
        INVITATION = "invitation"

    kind = models.CharField(max_length=10, choices=LinkKind)
    # The account that it changes; for an invitation, the account made with it.
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        null=True,
        related_name="+",
        verbose_name=_("account"),
    )
    # Its secret is in the link alone: who reads the database can't open it.
    token_hash = models.CharField(max_length=64, unique=True, editable=False)
    email = models.EmailField(_("e-mail address"), blank=True)
    # The state of the account; a link to one that has changed since opens nothing.
    account_state = models.CharField(max_length=64, blank=True, editable=False)
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        null=True,
        related_name="+",
        editable=False,
        verbose_name=_("invited by"),
    )
    # The network address of the request, as for counting failed log-ins.
    asked_from = models.CharField(max_length=45, blank=True, editable=False)
    # By the database's clock, as all that compares them.
    created_at = models.DateTimeField(_("created at"), db_default=Now())
    expires_at = models.DateTimeField(pgettext_lazy("a link", "works until"))
    used_at = models.DateTimeField(_("used at"), null=True, editable=False)

    class Meta:
        default_permissions = ()
        indexes = [
            # For counting links before another is made, and for deleting old ones.
            models.Index(fields=["user", "created_at"], name="mailed_link_of_user"),
            models.Index(fields=["asked_from", "created_at"], name="mailed_link_from"),
            models.Index(fields=["expires_at"], name="mailed_link_until"),
        ]

    def __str__(self) -> str:
        # Never an e-mail address: this goes into logs.
        return f"{self.kind} {self.pk}"


class Invitation(MailedLink):
    """A mailed link, as staff list them."""

    class Meta:
        proxy = True
        default_permissions = ("add", "view", "delete")
        verbose_name = _("invitation")
        verbose_name_plural = _("invitations")

    def __str__(self) -> str:
        return f"{self._meta.verbose_name} {self.pk}"
