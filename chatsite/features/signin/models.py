"""Links that let a person in or prove an address, and what a provider has given."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _


class MailedLink(models.Model):
    """A link that works once, until a time: to a new password, to a new address of
    e-mail, or to an account that there is not yet."""

    class Kind(models.TextChoices):
        RESET = "reset"
        EMAIL = "email"
        INVITATION = "invitation"

    kind = models.CharField(max_length=10, choices=Kind)
    # Whose account it changes; of an invitation, the account that was made with it.
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
    # What the account was like; a link to one that has changed since opens nothing.
    account_state = models.CharField(max_length=64, blank=True, editable=False)
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        null=True,
        related_name="+",
        editable=False,
        verbose_name=_("invited by"),
    )
    # The address of the person who asked for it, as failed log-ins are counted by.
    asked_from = models.CharField(max_length=45, blank=True, editable=False)
    # By the database's clock, as all that compares them.
    created_at = models.DateTimeField(_("created at"), db_default=Now())
    expires_at = models.DateTimeField(pgettext_lazy("a link", "works until"))
    used_at = models.DateTimeField(_("used at"), null=True, editable=False)

    class Meta:
        default_permissions = ()
        indexes = [
            # What is counted before another is made, and what is deleted by its age.
            models.Index(fields=["user", "created_at"], name="mailed_link_of_user"),
            models.Index(fields=["asked_from", "created_at"], name="mailed_link_from"),
            models.Index(fields=["expires_at"], name="mailed_link_until"),
        ]

    def __str__(self) -> str:
        # Never the address of a person: this goes into logs.
        return f"{self.kind} {self.pk}"


class Invitation(MailedLink):
    """The same, as staff list them."""

    class Meta:
        proxy = True
        default_permissions = ("add", "view", "delete")
        verbose_name = _("invitation")
        verbose_name_plural = _("invitations")

    def __str__(self) -> str:
        return gettext("Invitation %(id)s") % {"id": self.pk}


class Membership(models.Model):
    """What the groups of a person at a provider of identities have made of the account
    here: so that only that is taken back."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="+", editable=False
    )
    provider = models.CharField(max_length=40, editable=False)
    # Whether the account is of the staff because of its groups.
    gave_staff = models.BooleanField(default=False, editable=False)
    # When it was deactivated, as it had lost the group that it needs.
    left_at = models.DateTimeField(null=True, editable=False)
    # Where the provider is asked again without the person: with what, sealed by the
    # site's key, and when next.
    refresh_token = models.TextField(db_default="", editable=False)
    recheck_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["user", "provider"], name="one_membership")
        ]
        indexes = [
            # What every sweep looks for, where a provider is asked again.
            models.Index(
                fields=["recheck_at"],
                condition=models.Q(recheck_at__isnull=False),
                name="membership_recheck",
            )
        ]

    def __str__(self) -> str:
        return f"{self.provider} {self.user_id}"
