"""Facts that users state about themselves and want remembered."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from memory.models import Conversation, Message


class Fact(models.Model):
    """A part of a user's message, by its place in the text.

    No word of it is stored twice, so nothing of it stays when the message is deleted.
    `text` has a value only if the user has reworded the fact.
    """

    class State(models.TextChoices):
        OFFERED = "offered", _("Offered")
        KEPT = "kept", _("Kept")
        # For the conversation that it was stated in.
        HERE = "here", _("Kept in its conversation")
        DISMISSED = "dismissed", _("Dismissed")
        REPLACED = "replaced", _("Replaced")

    # The owner of the conversation, to find all facts of a user at once.
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="facts"
    )
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="facts")
    message = models.ForeignKey(Message, models.CASCADE, related_name="facts")
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()
    text = models.TextField(blank=True)
    # When that was written.
    worded_at = models.DateTimeField(null=True, blank=True)
    state = models.CharField(max_length=9, choices=State)
    replaced_by = models.ForeignKey(
        "self", models.SET_NULL, null=True, blank=True, related_name="replaces"
    )
    # The hashes by which requests refer to it, of all words that it ever had.
    names = models.JSONField(default=list, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name, verbose_name_plural = _("fact"), _("facts")
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["message", "start"], name="fact_place_unique"
            ),
            models.CheckConstraint(
                condition=Q(start__lt=models.F("end")), name="fact_has_words"
            ),
        ]

    def __str__(self) -> str:
        # Never its words: this goes into logs and lists.
        return f"Fact {self.pk} ({self.state})"
