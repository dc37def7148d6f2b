"""The table of what readers of a link have guessed, in numbers alone."""

from django.db import models

from chatsite.features.sharing.models import Share


class GuessCount(models.Model):
    """The number of readers who guessed yes, and no.

    The question is in `share.choices`. It never changes, so the numbers are always of
    the question beside them. No row says who guessed.
    """

    share = models.OneToOneField(Share, models.CASCADE, related_name="guess_count")
    yes = models.PositiveIntegerField(default=0)
    no = models.PositiveIntegerField(default=0)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.yes} : {self.no}"

    @property
    def total(self) -> int:
        return self.yes + self.no
