"""Experiments and samples: stored conversations played through other policies."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from chatsite.turns.models import LeasedRow
from memory.models import Conversation, PrivateRow
from memory.models.user_key import nullable_user


class Sample(PrivateRow):
    """Several conversations, drawn by a seed, each played through the same policies."""

    user = nullable_user(_("started by"))
    # The filters of the form from which the sample was drawn.
    drawn_from = models.JSONField(default=dict)
    seed = models.PositiveIntegerField(_("seed"))
    # The policies as they were entered, in their order.
    policies = models.JSONField(_("policies"), default=list)
    conversations = models.PositiveSmallIntegerField(_("conversations"))
    budget = models.PositiveBigIntegerField(_("budget"))
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta(PrivateRow.Meta):
        ordering = ["-id"]
        verbose_name = _("experiment over a sample")
        verbose_name_plural = _("experiments over samples")


class Experiment(LeasedRow):
    """A stored conversation played through another policy, beside the real one.

    Its state works like a turn's: the process that holds the owner token and renews
    the lease plays it, and every write names that token.
    """

    class State(models.TextChoices):
        QUEUED = "queued", _("Queued")
        RUNNING = "running", _("Running")
        DONE = "done", _("Done")
        STOPPED = "stopped", _("Stopped")
        FAILED = "failed", _("Failed")

    UNFINISHED = (State.QUEUED, State.RUNNING)

    conversation = models.ForeignKey(
        Conversation, models.CASCADE, related_name="experiments"
    )
    user = nullable_user(_("started by"))
    # In a sample, columns 0 and 1 are the conversation's own policy, played twice, and
    # the columns from 2 on are the policies of the sample.
    sample = models.ForeignKey(
        Sample, models.CASCADE, null=True, blank=True, related_name="experiments"
    )
    column = models.PositiveSmallIntegerField(default=0, db_default=0)
    policy = models.JSONField(_("policy"), default=dict)
    model = models.CharField(_("summariser"), max_length=100)
    budget = models.PositiveIntegerField(_("budget"))
    # Spent tokens, plus those reserved for a request under way: if the process dies
    # during the request, they count as spent.
    spent = models.PositiveIntegerField(_("spent"), default=0)
    requests = models.PositiveIntegerField(_("requests"), default=0)
    tokens_in = models.PositiveIntegerField(_("read"), default=0)
    tokens_out = models.PositiveIntegerField(_("written"), default=0)
    state = models.CharField(
        _("state"), max_length=7, choices=State, default=State.QUEUED
    )
    attempt = models.PositiveSmallIntegerField(default=0)
    # The last message of the conversation when the experiment was started.
    last_seq = models.PositiveIntegerField(_("last message"))
    done_messages = models.PositiveIntegerField(default=0)
    all_messages = models.PositiveIntegerField(default=0)
    # The steps so far, to continue after a crash; finally the result. See
    # replay_steps.py.
    result = models.JSONField(_("result"), null=True, blank=True)
    error = models.CharField(_("error"), max_length=100, blank=True)
    # The number of the site's slot for experiments that it holds.
    place = models.PositiveSmallIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(_("created"), auto_now_add=True, db_index=True)
    finished_at = models.DateTimeField(_("finished"), null=True, blank=True)

    class Meta:
        # The name from the time when it belonged to the review app.
        db_table = "desk_experiment"
        ordering = ["-id"]
        default_permissions = ()
        verbose_name = _("policy experiment")
        verbose_name_plural = _("policy experiments")
        constraints = [
            models.UniqueConstraint(
                fields=["place"],
                condition=models.Q(state="running"),
                name="one_trial_per_place",
            ),
        ]
        indexes = [
            models.Index(
                fields=["state", "lease_until"],
                condition=models.Q(state__in=["queued", "running"]),
                name="trial_unfinished",
            ),
        ]

    def __str__(self) -> str:
        return f"Experiment {self.pk} ({self.state})"


EXPERIMENT_LEASE = Experiment.make_lease()
