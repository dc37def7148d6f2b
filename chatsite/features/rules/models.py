"""The rules that a user states for a whole conversation."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from memory.models import Conversation, Message


class Rule(models.Model):
    """A part of a user's message, by its place in the text.

    No word of it is stored twice, so nothing of it stays when the message is deleted.
    `text` has a value only if the user has reworded the rule.
    """

    class State(models.TextChoices):
        OFFERED = "offered", _("Offered")
        KEPT = "kept", _("Kept by itself")
        CONFIRMED = "confirmed", _("Confirmed")
        DISMISSED = "dismissed", _("Dismissed")
        REPLACED = "replaced", _("Replaced")

    class RuleKind(models.TextChoices):
        INSTRUCTION = "instruction", _("Instruction")
        PREFERENCE = "preference", _("Preference")
        CONSTRAINT = "constraint", _("Constraint")

    # Fields with content: hidden from staff who may not read it.
    TEXTS = ("text",)

    # The states that the model sees.
    IN_FORCE = (State.KEPT, State.CONFIRMED)
    # The states that a user sees, beside the replaced ones.
    OPEN = (State.OFFERED, *IN_FORCE)

    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="rules")
    # Empty for a rule of the user's own list, which every conversation begins with.
    message = models.ForeignKey(
        Message, models.CASCADE, null=True, blank=True, related_name="rules"
    )
    start = models.PositiveIntegerField(default=0)
    end = models.PositiveIntegerField(default=0)
    text = models.TextField(blank=True)
    kind = models.CharField(_("kind"), max_length=11, choices=RuleKind, blank=True)
    state = models.CharField(_("state"), max_length=9, choices=State)
    replaced_by = models.ForeignKey(
        "self", models.SET_NULL, null=True, blank=True, related_name="replaces"
    )
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        # Named before the app; existing databases keep it.
        db_table = "memory_rule"
        verbose_name, verbose_name_plural = _("rule"), _("rules")
        ordering = ["conversation", "pk"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["message", "start"], name="rule_place_unique"
            ),
            models.CheckConstraint(
                condition=~Q(text="") | Q(message__isnull=False, end__gt=0),
                name="rule_has_words",
            ),
        ]
        indexes = [models.Index(fields=["conversation", "state"], name="rule_by_state")]

    def __str__(self) -> str:
        # Never its words: this goes into logs and lists.
        return f"Rule {self.pk} ({self.state})"
