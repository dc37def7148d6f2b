"""What the review app itself records: who looked, who reviewed, what was erased, and
what came of trying a policy on a stored conversation.
"""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from chatsite.turns.models import Turn
from memory.models import Conversation
from memory.models.history import History


class AppendOnly(History):
    """A row that is written once; the admin, the model and its queryset refuse more."""

    created_at = models.DateTimeField(_("when"), auto_now_add=True, db_index=True)

    class Meta:
        abstract = True


class AccessEvent(AppendOnly):
    """Someone of the staff saw a person's conversation or did something to it.

    It outlives the conversation, so it knows only its uuid.
    """

    class Action(models.TextChoices):
        VIEW = "view", _("read")
        EXPORT = "export", _("exported")
        RESTORE = "restore", _("restored a version")
        REBUILD = "rebuild", _("rebuilt the summaries")
        REVIEW = "review", _("marked reviewed")
        TRY = "try", _("tried another policy")
        PURGE = "purge", _("erased")

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        related_name="+",
        verbose_name=_("who"),
    )
    # Kept when the account is gone.
    username = models.CharField(_("user name"), max_length=150, db_index=True)
    action = models.CharField(_("action"), max_length=7, choices=Action)
    # Empty: a text that belongs to no conversation, such as the site's own prompt.
    conversation = models.UUIDField(_("conversation"), null=True, db_index=True)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        related_name="staff_accesses",
        verbose_name=_("owner"),
    )
    target = models.CharField(
        _("what"), max_length=100, blank=True, help_text=_("Never any text of it.")
    )
    address = models.GenericIPAddressField(_("from"), null=True)

    class Meta:
        ordering = ["-id"]
        default_permissions = ()
        verbose_name = _("access")
        verbose_name_plural = _("access log")

    def __str__(self) -> str:
        return f"{self.username}: {self.action} {str(self.conversation or '')[:8]}"


class Review(AppendOnly):
    """A reviewer has looked at a conversation as it was then."""

    conversation = models.ForeignKey(
        Conversation, models.CASCADE, related_name="reviews"
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    username = models.CharField(_("user name"), max_length=150)
    version = models.PositiveIntegerField(
        _("version"), help_text=_("The newest summary that was there; 0: none.")
    )
    last_seq = models.PositiveIntegerField(
        _("last message"), help_text=_("The newest message that was there.")
    )
    # Of the conversation then: what the model sees has changed when it has grown.
    memory_version = models.PositiveIntegerField(_("state of the view"))
    note = models.TextField(_("note"), blank=True)

    class Meta:
        ordering = ["-id"]
        default_permissions = ()
        verbose_name = _("review")
        verbose_name_plural = _("reviews")

    def __str__(self) -> str:
        return f"{self.username}, up to #{self.last_seq}"


class Tombstone(AppendOnly):
    """What is left of an erased conversation: numbers and a hash, no text of it."""

    conversation = models.UUIDField(_("conversation"), unique=True)
    messages = models.PositiveIntegerField(_("messages"))
    summaries = models.PositiveIntegerField(_("summaries"))
    model_calls = models.PositiveIntegerField(_("model calls"))
    turns = models.PositiveIntegerField(_("turns"))
    # Of what was erased, to prove a copy: documented where it is computed.
    sha256 = models.CharField(max_length=64)
    begun_at = models.DateTimeField(_("begun"))
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        related_name="+",
        verbose_name=_("erased by"),
    )
    username = models.CharField(_("user name"), max_length=150)
    reason = models.TextField(_("reason"), blank=True)

    class Meta:
        ordering = ["-id"]
        default_permissions = ()
        verbose_name = _("tombstone")
        verbose_name_plural = _("tombstones")

    def __str__(self) -> str:
        return f"{self.conversation}: {self.messages} messages"


class Experiment(models.Model):
    """A stored conversation played through another policy, next to the real one.

    Its state is kept like a turn's: the process that holds the owner token and renews
    the lease plays it, and every write names that token.
    """

    class State(models.TextChoices):
        QUEUED = "queued", _("Queued")
        RUNNING = "running", _("Running")
        DONE = "done", _("Done")
        STOPPED = "stopped", _("Stopped")
        FAILED = "failed", _("Failed")

    UNFINISHED = (State.QUEUED, State.RUNNING)
    LEASE = Turn.LEASE

    conversation = models.ForeignKey(
        Conversation, models.CASCADE, related_name="experiments"
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        related_name="+",
        verbose_name=_("started by"),
    )
    policy = models.JSONField(_("policy"), default=dict)
    model = models.CharField(_("summariser"), max_length=100)
    budget = models.PositiveIntegerField(
        _("budget"), help_text=_("Tokens that the summariser may read and write.")
    )
    # What was spent, and what is set aside for a request that is under way: a process
    # that dies in the middle of one has spent it.
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
    # Where to go on after a crash, and at the end what came out; steps.py writes it.
    result = models.JSONField(_("result"), null=True, blank=True)
    error = models.CharField(
        _("error"), max_length=100, blank=True, help_text=_("Code of the error.")
    )
    owner = models.CharField(max_length=36, blank=True)
    # One of the places that the site has for experiments.
    place = models.PositiveSmallIntegerField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(_("created"), auto_now_add=True, db_index=True)
    finished_at = models.DateTimeField(_("finished"), null=True, blank=True)

    class Meta:
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

    @property
    def is_finished(self) -> bool:
        return self.state not in self.UNFINISHED
