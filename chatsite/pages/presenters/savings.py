"""What the memory saved: the tokens that were sent, against those of the whole
transcript every time, less what the summaries took. Goes negative, and says so once
there are enough replies to tell.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db.models import QuerySet, Sum
from django.db.models.functions import Coalesce

from memory import context
from memory.engine.tokens import count_text
from memory.models import Conversation, ModelCall
from memory.ranges import Totals

# Before these a loss says nothing: a first summary costs what later replies save.
TELLING_REPLIES = 20


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

    @property
    def has_saved(self) -> bool:
        """Not by an estimate alone that was above what was reported."""
        return self.net > 0 and self.summaries > 0

    @property
    def is_telling(self) -> bool:
        return self.has_saved or self.replies >= TELLING_REPLIES


@dataclass(frozen=True, slots=True)
class Prompt:
    """What one reply was sent with, and what the whole transcript would have been."""

    seq: int
    sent: int
    is_reported: bool  # by the provider; else estimated
    whole: float  # estimated
    at: datetime


def measure_savings(conversation: Conversation) -> Savings:
    sent = list_prompts(conversation)
    tokens = sum(prompt.sent for prompt in sent)
    whole = round(sum(prompt.whole for prompt in sent))
    read, written = spent_on_summaries(conversation)
    return Savings(
        replies=len(sent),
        sent=tokens,
        whole=whole,
        summaries=read + written,
        money=price_tokens(whole - tokens - read, -written)
        if settings.PRICE_INPUT
        else None,
    )


def list_prompts(conversation: Conversation) -> list[Prompt]:
    """The requests that brought a reply, in the order of the replies."""
    rows = list(
        _select_own_calls(conversation, ModelCall.Purpose.REPLY)
        .exclude(message=None)
        .order_by("message__seq")
        .values_list("message__seq", "tokens_input", "tokens_estimated", "created_at")
    )
    wholes = _measure_wholes(conversation, [seq for seq, *_ in rows])
    return [
        Prompt(
            seq=seq,
            sent=estimated if reported is None else reported,
            is_reported=reported is not None,
            whole=whole,
            at=at,
        )
        for (seq, reported, estimated, at), whole in zip(rows, wholes, strict=True)
    ]


def _select_own_calls(conversation: Conversation, purpose: str) -> QuerySet[ModelCall]:
    """The requests that were made here: a branch or an import has older ones as
    copies."""
    rows = conversation.model_calls.filter(purpose=purpose)
    return rows.filter(created_at__gte=conversation.created_at)


def _measure_wholes(conversation: Conversation, replies: list[int]) -> Iterator[float]:
    """The prompts of these replies, had each held all messages before it."""
    if not replies:
        return
    rows = conversation.messages.filter(superseded_at=None, seq__lte=replies[-1])
    totals = Totals(dict(rows.values_list("seq", "tokens")))
    system = count_text(context.find_system_prompt(conversation)) + 4
    for seq in replies:
        plain = totals.up_to(seq - 1) + system
        yield plain * conversation.token_ratio + conversation.token_overhead


def spent_on_summaries(conversation: Conversation) -> tuple[int, int]:
    """Tokens that the summariser has read and written."""
    sums = _select_own_calls(conversation, ModelCall.Purpose.SUMMARY).aggregate(
        read=Sum(Coalesce("tokens_input", "tokens_estimated"), default=0),
        written=Sum("tokens_output", default=0),
    )
    return sums["read"], sums["written"]


def price_tokens(tokens_in: int, tokens_out: int) -> float:
    """Dollars by the prices of fresh tokens, as if none came from a cache."""
    cost = tokens_in * settings.PRICE_INPUT + tokens_out * settings.PRICE_OUTPUT
    return cost / 1_000_000
