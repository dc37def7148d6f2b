"""What was sent to models, by reference and hash, and what it cost."""

from collections.abc import Mapping
from typing import Any, ClassVar

from django.db import models
from django.db.models.functions import Coalesce
from django.utils.translation import gettext_lazy as _

from memory.integrity.signatures import SignatureField

from .conversation import Conversation
from .history import NEWEST, History
from .message import Message
from .summary import Summary

# Less than this share of the estimate is no error of the estimate any more, and less
# than calibration.py learns from.
READ_WHOLE = 2 / 3
LEAST_READ = 1_000


def billed_tokens() -> dict[str, Any]:
    """Expressions over rows of ModelCall: what was paid for is `billed_read`, of which
    `billed_cached` came from the provider's cache, and `billed_written`. As reported,
    else as estimated; what failed before its first word and reported nothing cost
    nothing, unless it was broken off here."""
    number = models.BigIntegerField()
    paid = models.Q(error__in=("", "cancelled")) | models.Q(message__isnull=False)
    asked = Coalesce("tokens_input", "tokens_estimated", output_field=number)
    return {
        "billed_read": models.Case(
            models.When(paid | models.Q(tokens_input__isnull=False), then=asked),
            default=0,
            output_field=number,
        ),
        "billed_cached": models.Case(
            models.When(tokens_input__isnull=False, then=Coalesce("tokens_cached", 0)),
            default=0,
            output_field=number,
        ),
        "billed_written": Coalesce(
            "tokens_output", "message__tokens", 0, output_field=number
        ),
    }


class Prompt(History):
    """A text that is not part of any conversation but was sent with one.

    Kept by its hash, so that what was sent for an old reply can be rebuilt after the
    system prompt or the wording around the summaries has changed.
    """

    sha256 = models.CharField(max_length=64, primary_key=True)
    text = models.TextField()
    # Those it was sent with, or imported with; it is removed with the last of them.
    conversations = models.ManyToManyField(Conversation, related_name="prompts")

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.sha256[:12]


class ModelCall(History):
    """One request to a model: for the costs, the audit and the right pane.

    `refs` are references to what was sent; `sha256` proves that a rebuilt list is it.
    """

    LINKS: ClassVar = ("message", "message_id", "summary", "summary_id")
    # What is known once the model has answered.
    CHANGING = frozenset(
        {
            *("message", "summary", "tokens_input", "tokens_cached", "tokens_output"),
            *("first_token_ms", "total_ms", "attempts", "error"),
        }
    )

    class Purpose(models.TextChoices):
        REPLY = "reply", _("Reply")
        SUMMARY = "summary", _("Summary")
        TITLE = "title", _("Title")
        # A long result of a tool, made short.
        RESULT = "result", _("Result")
        # A reply asked for again in another way; it stands in no transcript.
        TRIAL = "trial", _("Trial")

    # Those whose references say all that was sent.
    COMPOSED = (Purpose.REPLY, Purpose.TRIAL)

    conversation = models.ForeignKey(
        Conversation, models.CASCADE, related_name="model_calls"
    )
    purpose = models.CharField(max_length=7, choices=Purpose)
    message = models.ForeignKey(
        Message, models.CASCADE, null=True, blank=True, related_name="model_calls"
    )
    summary = models.ForeignKey(
        Summary, models.CASCADE, null=True, blank=True, related_name="model_calls"
    )
    refs = models.JSONField(default=dict)
    sha256 = models.CharField(max_length=64)
    model = models.CharField(max_length=100)
    # Of a reply, as pages name it; empty for the demo model.
    provider = models.CharField(
        max_length=100, blank=True, default="", db_default="", editable=False
    )
    tokens_estimated = models.PositiveIntegerField()
    # Of these, what each part took: names and tokens in the order of the request.
    parts = models.JSONField(default=list, db_default=[], blank=True, editable=False)
    # Reported by the provider; empty when it reported nothing.
    tokens_input = models.PositiveIntegerField(null=True, blank=True)
    tokens_cached = models.PositiveIntegerField(null=True, blank=True)
    tokens_output = models.PositiveIntegerField(null=True, blank=True)
    first_token_ms = models.PositiveIntegerField(null=True, blank=True)
    total_ms = models.PositiveIntegerField(default=0)
    attempts = models.PositiveSmallIntegerField(default=1)
    error = models.CharField(
        max_length=100, blank=True, help_text=_("Class of the error.")
    )
    created_at = models.DateTimeField(auto_now_add=True)
    signature = SignatureField(
        of=(
            *("conversation_id", "purpose", "refs", "sha256", "model"),
            *("tokens_estimated", "created_at"),
        ),
        later=("provider", "parts"),
    )

    class Meta:
        ordering = NEWEST
        default_permissions = ()
        indexes = [
            models.Index(fields=["conversation", "purpose", "-created_at"]),
            models.Index(fields=NEWEST, name="call_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.purpose} by {self.model}"

    @property
    def is_cut(self) -> bool:
        """Return whether the provider has read clearly less than it was sent, so that
        it has cut the beginning; a smaller count can be of what was not cached. The
        estimate may have grown by other texts: it has to be so without that, too."""
        reported, sent = self.tokens_input or 0, self.tokens_estimated
        if not LEAST_READ <= reported < sent * READ_WHOLE:
            return False
        known = self.conversation
        plain = (sent - known.token_overhead) / max(1.0, known.token_ratio)
        return reported < plain * READ_WHOLE

    @property
    def share_read(self) -> int:
        """Return the share of what was sent that was read, in percent."""
        return round((self.tokens_input or 0) * 100 / max(1, self.tokens_estimated))

    @property
    def estimate_error(self) -> str:
        """How far the estimate was from what the provider reported; "": not known."""
        reported = self.tokens_input
        if not reported or self.is_cut:
            return ""
        share = round((self.tokens_estimated - reported) * 100 / reported)
        return f"{share:+} %" if share else "0 %"

    @classmethod
    def check_change(cls, values: Mapping[str, Any]) -> None:
        super().check_change(values)
        if any(values.get(name, True) is None for name in cls.LINKS):
            raise TypeError("ModelCall rows are append-only: what it made stays.")
