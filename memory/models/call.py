"""Requests to models, by reference and hash, and their costs."""

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

# A smaller share of the estimate is not explained by the estimate's error. It is also
# less than calibration.py learns from.
READ_WHOLE = 2 / 3
LEAST_READ = 1_000


def billed_tokens() -> dict[str, Any]:
    """Return expressions over rows of ModelCall for the billed tokens.

    `billed_read` is the input, `billed_cached` the part of it from the provider's
    cache, `billed_written` the output: as reported, else as estimated. `billed_extra`
    is what writing to the cache costs besides, in tokens of the input. A request that
    failed before its first word and reported nothing cost nothing, unless it was
    cancelled here.
    """
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
        "billed_extra": models.F("tokens_extra"),
    }


def list_own_calls(
    conversation: Conversation, purpose: str
) -> models.QuerySet["ModelCall"]:
    """Return the requests that were made here.

    A branch or an import has older ones as copies.
    """
    rows = conversation.model_calls.filter(purpose=purpose)
    return rows.filter(created_at__gte=conversation.created_at)


def sum_summary_calls(
    conversation: Conversation,
) -> models.QuerySet["ModelCall", Any]:
    """Return, for each model that has summarised, its name, tokens read and written."""
    rows = list_own_calls(conversation, ModelCall.Purpose.SUMMARY).order_by()
    return rows.values_list("model").annotate(
        read=models.Sum(Coalesce("tokens_input", "tokens_estimated"), default=0),
        written=models.Sum("tokens_output", default=0),
    )


class Prompt(History):
    """A text that is not part of any conversation but was sent with one.

    Kept by its hash, so that the request of an old reply can be rebuilt after the
    system prompt or the wording around the summaries has changed.
    """

    sha256 = models.CharField(max_length=64, primary_key=True)
    text = models.TextField()
    # Conversations it was sent or imported with; it is removed with the last of them.
    conversations = models.ManyToManyField(Conversation, related_name="prompts")

    def __str__(self) -> str:
        return self.sha256[:12]


class ModelCall(History):
    """One request to a model: for the costs, the audit and the right pane.

    `refs` are references to its content; `sha256` proves that a rebuilt list is the
    same.
    """

    LINKS: ClassVar = ("message", "message_id", "summary", "summary_id")
    # Columns that are known once the model has answered.
    CHANGING = frozenset(
        {
            *("message", "summary", "tokens_input", "tokens_cached", "tokens_output"),
            *("first_token_ms", "total_ms", "attempts", "error"),
            *("body_sha256", "body_fields", "tokens_extra"),
        }
    )

    class Purpose(models.TextChoices):
        REPLY = "reply", _("Reply")
        SUMMARY = "summary", _("Summary")
        TITLE = "title", _("Title")
        # The summary of a long tool result.
        RESULT = "result", _("Result")
        # A reply requested again in another way; it is in no transcript.
        TRIAL = "trial", _("Trial")

    # Purposes of requests whose references describe all of their content.
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
    # The provider of a reply, as pages name it; empty for the demo model.
    provider = models.CharField(
        max_length=100, blank=True, default="", db_default="", editable=False
    )
    tokens_estimated = models.PositiveIntegerField()
    # The estimate by part: names and tokens, in the order of the request.
    parts = models.JSONField(default=list, db_default=[], blank=True, editable=False)
    # Of the body that left, when it has; empty where that is not known. Its fields
    # besides model, messages and tools.
    body_sha256 = models.CharField(
        max_length=64, blank=True, default="", db_default="", editable=False
    )
    body_fields = models.JSONField(
        default=dict, db_default={}, blank=True, editable=False
    )
    # Reported by the provider; empty when it reported nothing.
    tokens_input = models.PositiveIntegerField(null=True, blank=True)
    tokens_cached = models.PositiveIntegerField(null=True, blank=True)
    tokens_output = models.PositiveIntegerField(null=True, blank=True)
    # What writing to the provider's cache cost besides, in tokens of the input.
    tokens_extra = models.PositiveIntegerField(default=0, db_default=0, editable=False)
    first_token_ms = models.PositiveIntegerField(null=True, blank=True)
    total_ms = models.PositiveIntegerField(default=0)
    attempts = models.PositiveSmallIntegerField(default=1)
    error = models.CharField(max_length=100, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    signature = SignatureField(
        of=(
            *("conversation_id", "purpose", "refs", "sha256", "model"),
            *("tokens_estimated", "created_at"),
        ),
        later=("provider", "parts"),
    )

    class Meta(History.Meta):
        ordering = NEWEST
        indexes = [
            models.Index(fields=["conversation", "purpose", "-created_at"]),
            models.Index(fields=NEWEST, name="call_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.purpose} by {self.model}"

    @property
    def is_cut(self) -> bool:
        """True if the provider has cut the beginning of the request.

        It has then read clearly less than it was sent; a slightly smaller count can
        leave out cached tokens. The estimate may have grown by other texts, so the same
        must hold without that growth.
        """
        reported, sent = self.tokens_input or 0, self.tokens_estimated
        # A provider may drop what only it can read.
        sent -= sum(each[1] for each in self.parts if [*each][:1] == ["only_there"])
        if not LEAST_READ <= reported < sent * READ_WHOLE:
            return False
        known = self.conversation
        plain = (sent - known.token_overhead) / max(1.0, known.token_ratio)
        return reported < plain * READ_WHOLE

    @property
    def share_read(self) -> int:
        """The share of the request that the provider read, in percent."""
        return round((self.tokens_input or 0) * 100 / max(1, self.tokens_estimated))

    @property
    def estimate_error(self) -> str:
        """The deviation of the estimate from the provider's count; "" if unknown."""
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
