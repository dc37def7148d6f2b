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


class SignedFile(models.Model):
    """The hash of a file that was signed, for the root of its day.

    It says nothing of the file: the signature in it cannot be guessed. So it may stay
    when a conversation or a user is erased, and older proofs stay valid.
    """

    sha256 = models.CharField(max_length=64, unique=True)
    # In UTC.
    day = models.DateField(db_index=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.sha256
