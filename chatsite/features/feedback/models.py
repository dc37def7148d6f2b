"""The feedback of users on replies."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from memory.models import Conversation, Message

NEWEST = ["-updated_at", "-id"]


class Feedback(models.Model):
    """The feedback of the conversation's owner on a reply: good or bad, and a comment.

    There is one per reply. It is deleted with the reply's text, as it can quote it.
    """

    # The limit of the comment.
    MAX_CHARS = 1_000
    # Fields that can quote the conversation: hidden from staff who may not read it.
    TEXTS = ("comment",)

    class Verdict(models.TextChoices):
        GOOD = "good", _("Good")
        BAD = "bad", _("Bad")

    conversation = models.ForeignKey(
        Conversation, models.CASCADE, related_name="feedback"
    )
    message = models.OneToOneField(
        Message, models.CASCADE, related_name="feedback", verbose_name=_("reply")
    )
    verdict = models.CharField(_("verdict"), max_length=4, choices=Verdict)
    comment = models.TextField(_("comment"), blank=True)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("when"), auto_now=True)

    class Meta:
        # Named before the app; existing databases keep it.
        db_table = "chat_feedback"
        ordering = NEWEST
        default_permissions = ()
        verbose_name = verbose_name_plural = _("feedback")
        indexes = [
            # The order of staff's list.
            models.Index(fields=NEWEST, name="feedback_newest"),
            models.Index(fields=["verdict", *NEWEST], name="feedback_by_verdict"),
            models.Index(
                fields=NEWEST,
                condition=~models.Q(comment=""),
                name="feedback_with_comment",
            ),
        ]

    def __str__(self) -> str:
        # Never the comment: this goes into logs and lists.
        return f"{self._meta.verbose_name} {self.pk}: {self.get_verdict_display()}"
