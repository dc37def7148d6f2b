"""The model of the rights that an identity provider has given to an account."""

from django.conf import settings
from django.db import models


class Membership(models.Model):
    """The changes that a user's groups at a provider have made to the account.

    Only these are undone when the groups change.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="+", editable=False
    )
    provider = models.CharField(max_length=40, editable=False)
    # Whether the account is staff because of its groups.
    gave_staff = models.BooleanField(default=False, editable=False)
    # The time of deactivation, because the required group was lost.
    left_at = models.DateTimeField(null=True, editable=False)
    # For a provider that is asked again in the background: the refresh token,
    # encrypted with the site's key, and the time of the next request.
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
            # For the query of each background run that looks for due accounts.
            models.Index(
                fields=["recheck_at"],
                condition=models.Q(recheck_at__isnull=False),
                name="membership_recheck",
            )
        ]

    def __str__(self) -> str:
        return f"{self.provider} {self.user_id}"
