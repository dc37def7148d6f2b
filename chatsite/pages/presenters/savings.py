"""Savings of the memory: tokens of the whole transcript, less those that were sent.

The whole is counted for every request, and the summaries' own tokens are subtracted.
The result can be negative.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from chatsite.llm import pricing
from chatsite.turns.requests import model_of
from memory import context
from memory.engine.tokens import count_text
from memory.models import Conversation, ModelCall
from memory.models.call import list_own_calls, sum_summary_calls
from memory.ranges import Totals


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
    def money_beside(self) -> float | None:
        """The money saved with the tokens, or spent beyond the whole transcript."""
        return self.money if self.money is None or self.net >= 0 else -self.money


@dataclass(frozen=True, slots=True)
class ReplyPrompt:
    """The tokens of one reply's request, and of the whole transcript at that time."""

    seq: int
    sent: int
    is_reported: bool  # by the provider; else estimated
    whole: float  # estimated
    at: datetime


def measure_savings(conversation: Conversation) -> Savings:
    sent = list_prompts(conversation)
    tokens = sum(prompt.sent for prompt in sent)
    whole = round(sum(prompt.whole for prompt in sent))
    spent = list(sum_summary_calls(conversation))
    return Savings(
        replies=len(sent),
        sent=tokens,
        whole=whole,
        summaries=sum(read + written for _, read, written in spent),
        money=_price_savings(model_of(conversation), whole - tokens, spent),
    )


def _price_savings(
    model: str, saved: int, spent: list[tuple[str, int, int]]
) -> float | None:
    """Return dollars by the prices of fresh tokens, as if none came from a cache.

    None if the conversation's model has no price.
    """
    if not pricing.find_prices(model).input:
        return None
    summaries = sum(pricing.price_tokens(*each) for each in spent)
    return pricing.price_tokens(model, saved) - summaries


def list_prompts(conversation: Conversation) -> list[ReplyPrompt]:
    """Return the requests that brought a reply, in the order of the replies."""
    rows = list(
        list_own_calls(conversation, ModelCall.Purpose.REPLY)
        .exclude(message=None)
        .order_by("message__seq")
        .values_list("message__seq", "tokens_input", "tokens_estimated", "created_at")
    )
    wholes = _measure_wholes(conversation, [seq for seq, *_ in rows])
    return [
        ReplyPrompt(
            seq=seq,
            sent=estimated if reported is None else reported,
            is_reported=reported is not None,
            whole=whole,
            at=at,
        )
        for (seq, reported, estimated, at), whole in zip(rows, wholes, strict=True)
    ]


def _measure_wholes(conversation: Conversation, replies: list[int]) -> Iterator[float]:
    """Return the prompts of these replies, had each held all messages before it."""
    if not replies:
        return
    rows = conversation.messages.filter(superseded_at=None, seq__lte=replies[-1])
    totals = Totals(dict(rows.values_list("seq", "tokens")))
    system = count_text(context.find_system_prompt(conversation)) + 4
    for seq in replies:
        plain = totals.up_to(seq - 1) + system
        yield plain * conversation.token_ratio + conversation.token_overhead
