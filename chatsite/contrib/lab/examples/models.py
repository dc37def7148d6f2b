"""Replies that are examples, and what other models made of their requests."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from chatsite.protocol.errors import explain_code
from memory.models import Conversation, Message, PrivateRow

NEWEST = ["-updated_at", "-id"]


class Example(models.Model):
    """A reply, its kind of example, and the answer that should have been given.

    Each user who marks it has one: the conversation's owner, or staff. It is
    deleted with the reply's text, as it can quote it.
    """

    # Maximum length of a correction.
    MAX_CHARS = 16_000
    # Fields that can quote the conversation: hidden from staff who may not read it.
    TEXTS = ("correction",)

    class Label(models.TextChoices):
        GOOD = "good", _("Good as it is")
        WRONG = "wrong", _("Wrong")
        INVENTED = "invented", _("Made up")
        INCOMPLETE = "incomplete", _("Incomplete")
        FORM = "form", _("Wrong form or tone")
        REFUSED = "refused", _("Refused for no reason")

    conversation = models.ForeignKey(
        Conversation, models.CASCADE, related_name="examples"
    )
    message = models.ForeignKey(
        Message, models.CASCADE, related_name="examples", verbose_name=_("reply")
    )
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        related_name="examples",
        verbose_name=_("marked by"),
    )
    label = models.CharField(_("kind"), max_length=10, choices=Label)
    correction = models.TextField(_("what should have been said"), blank=True)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("when"), auto_now=True)

    class Meta:
        ordering = NEWEST
        default_permissions = ()
        verbose_name = _("example")
        verbose_name_plural = _("examples")
        constraints = [
            models.UniqueConstraint(
                fields=["message", "author"], name="example_of_person"
            ),
        ]
        indexes = [
            # The orders of the staff's lists, and of a user's own list.
            models.Index(fields=NEWEST, name="example_newest"),
            models.Index(fields=["label", *NEWEST], name="example_by_label"),
            models.Index(fields=["author", *NEWEST], name="example_by_author"),
        ]

    def __str__(self) -> str:
        # Never the correction: this goes into logs and lists.
        values = {"id": self.pk, "label": self.get_label_display()}
        return gettext("Example %(id)s: %(label)s") % values


class ExampleAnswer(PrivateRow):
    """An answer of a model to the request of an example, without any judgement.

    The request is as it was sent, or as another policy would have made it.
    """

    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="+")
    example = models.ForeignKey(Example, models.CASCADE, related_name="answers")
    # The user who pays for it: the author of the example, or staff.
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    model = models.CharField(max_length=100)
    # "" = the request as it was sent.
    preset = models.CharField(max_length=20, blank=True)
    text = models.TextField(blank=True)
    # A code; "" = the model has answered.
    error = models.CharField(max_length=100, blank=True)
    requests = models.PositiveIntegerField(default=0)
    tokens_in = models.PositiveIntegerField(default=0)
    tokens_out = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta(PrivateRow.Meta):
        ordering = ["-id"]

    @property
    def why(self) -> str:
        """The reason why there is no answer, or ""."""
        return explain_code(self.error) if self.error else ""
