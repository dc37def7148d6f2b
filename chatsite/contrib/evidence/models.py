"""The site's keys of signatures."""

from django.db import models


class SigningKey(models.Model):
    """A key pair; the newest one that is not retired signs.

    A row stays after its key was retired, because older files are checked with it.
    """

    # The beginning of the hash of the public key.
    kid = models.CharField(max_length=16, unique=True)
    public = models.CharField(max_length=64)
    # Encrypted; empty once the key is retired.
    private = models.TextField(blank=True)
    created_at = models.DateTimeField()
    retired_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["pk"]
        default_permissions = ()

    def __str__(self) -> str:
        return self.kid
