"""The base of tables that logs and lists show without any text of their rows."""

from django.db import models


class PrivateRow(models.Model):
    """A row that is named by its key alone, as people may have written the rest."""

    class Meta:
        abstract = True
        default_permissions = ()

    def __str__(self) -> str:
        return f"{type(self).__name__} {self.pk}"
