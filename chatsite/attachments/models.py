"""Files that people have uploaded and not sent yet."""

import uuid

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class Upload(models.Model):
    """The text of a file, until a message takes it or a day has passed. Once it is
    sent, it belongs to the message, and this row is gone."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="uploads"
    )
    name = models.CharField(max_length=120)
    kind = models.CharField(max_length=20, blank=True)
    size = models.PositiveIntegerField(help_text=_("Bytes of the file."))
    text = models.TextField()
    tokens = models.PositiveIntegerField(help_text=_("Estimated."))
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        # Named before the app; existing databases keep it.
        db_table = "memory_upload"
        default_permissions = ()
        verbose_name, verbose_name_plural = _("upload"), _("uploads")

    def __str__(self) -> str:
        # Never the name, which a person chose.
        return f"Upload {str(self.id)[:8]}"
