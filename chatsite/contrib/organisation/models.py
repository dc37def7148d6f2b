"""What a provider of identities has given to accounts."""

from django.conf import settings
from django.db import models


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
        # The table is older than the app.
        db_table = "signin_membership"
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
