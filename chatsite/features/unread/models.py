"""The table of unread turns."""

from django.db import models

from chatsite.turns.models import Turn
from memory.models import Conversation


class UnreadTurn(models.Model):
    """The newest turn of a conversation that ended or waits, and is unread.

    The news are read from the turn.
    """

    conversation = models.OneToOneField(
        Conversation, models.CASCADE, primary_key=True, related_name="unread_turn"
    )
    turn = models.ForeignKey(Turn, models.CASCADE, related_name="+")

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"Unread turn of conversation {self.pk}"
