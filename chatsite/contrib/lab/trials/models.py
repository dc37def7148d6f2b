"""The tables of trials: other answers to a changed request."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from chatsite.turns.models import LeasedRow
from memory.models import Conversation, Message, ModelCall
from memory.view.variation import Variation


class Trial(LeasedRow):
    """A reply asked for again in another way. It is in no transcript and in no request.

    Its state is kept like a turn's: the process that holds the owner token and renews
    the lease writes it, and every write names that token.
    """

    # What can quote the conversation: hidden from staff who may not read it.
    TEXTS = ("words", "text", "asked")

    class State(models.TextChoices):
        QUEUED = "queued", _("Waiting")
        RUNNING = "running", _("Writing")
        DONE = "done", _("Complete")
        STOPPED = "stopped", _("Stopped")
        FAILED = "failed", _("Failed")
        TRUNCATED = "truncated", _("Cut off")
        INTERRUPTED = "interrupted", _("Interrupted")

    UNFINISHED = (State.QUEUED, State.RUNNING)

    conversation = models.ForeignKey(
        Conversation, models.CASCADE, related_name="trials"
    )
    message = models.ForeignKey(
        Message, models.CASCADE, related_name="trials", verbose_name=_("reply")
    )
    # The latest request that was sent for it.
    call = models.OneToOneField(
        ModelCall, models.CASCADE, null=True, blank=True, related_name="trial"
    )
    # A variation without its words, which have a column of their own.
    changes = models.JSONField(_("changes"), default=dict)
    words = models.TextField(_("other words"), blank=True)
    model = models.CharField(_("model"), max_length=100)
    state = models.CharField(
        _("state"), max_length=11, choices=State, default=State.QUEUED
    )
    attempt = models.PositiveSmallIntegerField(default=0)
    text = models.TextField(_("text"), blank=True)
    # The names of tools that the model asked for: a trial runs none.
    asked = models.JSONField(_("tools it asked for"), default=list)
    error = models.CharField(
        _("error"), max_length=100, blank=True, help_text=_("Code of the error.")
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    finished_at = models.DateTimeField(_("finished"), null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        default_permissions = ()
        verbose_name = _("trial")
        verbose_name_plural = _("trials")
        indexes = [
            models.Index(
                fields=["state", "lease_until"],
                condition=Q(state__in=["queued", "running"]),
                name="trials_unfinished",
            ),
        ]

    def __str__(self) -> str:
        values = {"id": self.pk, "state": self.get_state_display()}
        return gettext("Trial %(id)s: %(state)s") % values

    @property
    def variation(self) -> Variation:
        return Variation.from_json(self.changes, self.words)


TRIAL_LEASE = Trial.make_lease()
