"""The items that staff should look at, and their progress."""

from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _

from chatsite import plugins
from memory.models import Conversation
from memory.models.user_key import nullable_user


def list_kinds() -> list[tuple[str, Any]]:
    sources = plugins.sources[plugins.ReviewSource]
    return [(kind, source.name) for kind, source in sources.items()]


class QueueItem(models.Model):
    """A row of another table that someone of the staff should look at."""

    # Fields that can quote the conversation: hidden from staff who may not read it.
    TEXTS = ("note",)
    MAX_NOTE = 2_000

    class State(models.TextChoices):
        OPEN = "open", _("To do")
        WORK = "work", _("In work")
        DONE = "done", _("Finished")

    conversation = models.ForeignKey(
        Conversation, models.CASCADE, related_name="queue_items"
    )
    kind = models.CharField(_("kind"), max_length=10, choices=list_kinds)
    # The key of the row. A hook says which table; it can be of another app.
    source = models.PositiveBigIntegerField()
    # The number of the reply, or the version of the summary.
    number = models.PositiveIntegerField()
    found_at = models.DateTimeField(_("when"))
    state = models.CharField(
        _("state"), max_length=4, choices=State, default=State.OPEN
    )
    assignee = nullable_user(_("assigned to"), blank=True)
    note = models.TextField(
        _("note"),
        blank=True,
        max_length=MAX_NOTE,
        help_text=_(
            "Don't quote message text: the note stays when a message is deleted."
        ),
    )
    changed_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        # In work, to do, finished.
        ordering = ["-state", "-found_at", "-id"]
        default_permissions = ()
        verbose_name = _("item of the review queue")
        verbose_name_plural = _("items of the review queue")
        constraints = [
            models.UniqueConstraint(fields=["kind", "source"], name="queue_source"),
        ]
        indexes = [
            models.Index(fields=["-state", "-found_at", "-id"], name="queue_order"),
        ]

    def __str__(self) -> str:
        # Never the note: this goes into logs and lists.
        return f"{self._meta.verbose_name} {self.pk}: {self.get_kind_display()}"
