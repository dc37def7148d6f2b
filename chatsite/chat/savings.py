"""What the memory saved: the tokens that were sent, against those of the whole
transcript every time, less what the summaries took. Goes negative, and says so.
"""

from dataclasses import dataclass
from itertools import accumulate

from django.conf import settings
from django.db.models import QuerySet, Sum
from django.db.models.functions import Coalesce

from memory import context
from memory.engine.tokens import count_text
from memory.models import Conversation, ModelCall


@dataclass(frozen=True, slots=True)
class Savings:
    """Tokens of all replies so far; money where prices are set."""

    replies: int
    sent: int
    whole: int  # had every request held the whole transcript, estimated
    summaries: int  # read and written by the summariser
    money: float | None = None

    @property
    def net(self) -> int:
        return self.whole - self.sent - self.summaries

    @property
    def loss(self) -> int:
        return max(0, -self.net)


def of(conversation: Conversation) -> Savings:
    rows = list(
        _calls(conversation, ModelCall.Purpose.REPLY)
        .exclude(message=None)
        .annotate(sent=Coalesce("tokens_input", "tokens_estimated"))
        .order_by("message__seq")
        .values_list("message__seq", "sent")
    )
    sent = sum(tokens for _, tokens in rows)
    whole = _whole(conversation, [seq for seq, _ in rows])
    spent = _spent(conversation)
    read, written = spent["read"] or 0, spent["written"] or 0
    return Savings(
        replies=len(rows),
        sent=sent,
        whole=whole,
        summaries=read + written,
        money=_money(whole - sent - read, -written),
    )


def _calls(conversation: Conversation, purpose: str) -> QuerySet[ModelCall]:
    """Those that were made here: a branch or an import has older ones as copies."""
    rows = conversation.model_calls.filter(purpose=purpose)
    return rows.filter(created_at__gte=conversation.created_at)


def _whole(conversation: Conversation, replies: list[int]) -> int:
    """The prompts of these replies, had each held all messages before it."""
    if not replies:
        return 0
    rows = conversation.messages.filter(superseded_at=None, seq__lte=replies[-1])
    sizes = dict(rows.values_list("seq", "tokens"))
    totals = list(accumulate(sizes.get(seq, 0) for seq in range(replies[-1])))
    system = count_text(context.system_prompt(conversation)) + 4
    whole = sum(totals[seq - 1] + system for seq in replies)
    return round(whole * conversation.token_ratio)


def _spent(conversation: Conversation) -> dict[str, int | None]:
    return _calls(conversation, ModelCall.Purpose.SUMMARY).aggregate(
        read=Sum(Coalesce("tokens_input", "tokens_estimated")),
        written=Sum("tokens_output"),
    )


def _money(tokens_in: int, tokens_out: int) -> float | None:
    """By the prices of fresh tokens; what a provider's cache saved beside is left out
    on both sides."""
    if not settings.PRICE_INPUT:
        return None
    cost = tokens_in * settings.PRICE_INPUT + tokens_out * settings.PRICE_OUTPUT
    return cost / 1_000_000
