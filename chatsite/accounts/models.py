"""The table that tells names apart which people would not."""

from django.conf import settings
from django.db import models
from django.db.models import Q


class NameKey(models.Model):
    """A key of an account's name (names.py), which names that look like it have too.

    One account of each key is its first: of two that sign up at once, the database
    takes one. Accounts that staff or an organisation name can look alike.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="name_keys"
    )
    # A digest, for skeletons can be longer than what an index takes.
    key = models.CharField(max_length=64)
    is_first = models.BooleanField()
    # The version that made it, and the name: of another one it has to be made again.
    made_of = models.TextField(db_default="")

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["key"], condition=Q(is_first=True), name="first_of_name_key"
            ),
            models.UniqueConstraint(fields=["key", "user"], name="one_name_key"),
        ]

    def __str__(self) -> str:
        return self.key
