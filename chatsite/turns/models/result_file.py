"""The files in results of tools."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from memory.models import Conversation, Message


class ResultFile(models.Model):
    """A file or an address in the result of a call, for people: the model has a note of
    it in the text. It is deleted with that text.

    Without `data` and `url` it was too large to be kept.
    """

    conversation = models.ForeignKey(
        Conversation, models.CASCADE, related_name="result_files"
    )
    message = models.ForeignKey(Message, models.CASCADE, related_name="result_files")
    place = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=200, blank=True)
    title = models.CharField(max_length=200, blank=True)
    kind = models.CharField(
        max_length=130, blank=True, help_text=_("Its media type, as the tool says.")
    )
    url = models.TextField(blank=True)
    size = models.PositiveBigIntegerField(null=True, blank=True)
    data = models.BinaryField(null=True, blank=True)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["message", "place"], name="result_file_place"
            ),
        ]

    def __str__(self) -> str:
        # Never the name, which a tool chose.
        return f"ResultFile {self.pk}"
