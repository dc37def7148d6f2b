"""The table of labels that people give to their conversations."""

from django.conf import settings
from django.db import models

from memory.models import Conversation, PrivateRow


class Label(PrivateRow):
    """A name that a user gives to any number of their conversations."""

    MAX_CHARS = 40

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="labels"
    )
    name = models.CharField(max_length=MAX_CHARS)
    # The name without the difference of capitals, which SQLite knows of ASCII only.
    # A letter becomes up to three.
    key = models.CharField(max_length=3 * MAX_CHARS, editable=False)
    conversations = models.ManyToManyField(
        Conversation, related_name="labels", blank=True
    )

    class Meta(PrivateRow.Meta):
        # Named before the app; existing databases keep it.
        db_table = "memory_label"
        ordering = ["key"]
        constraints = [
            models.UniqueConstraint(fields=["owner", "key"], name="label_name_unique"),
        ]
