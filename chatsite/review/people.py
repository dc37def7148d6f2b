"""What one person has used of the site, from their own rows alone."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db.models.functions import TruncDate
from django.utils import timezone

from chatsite.turns import limits
from chatsite.turns.models import Allowance
from memory.models import Conversation, Message, ModelCall

from . import costs

DAYS = 14


@dataclass(frozen=True, slots=True)
class Use:
    """One day's requests to one model."""

    day: Any
    model: str
    requests: int
    tokens_in: int
    tokens_cached: int
    tokens_out: int

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    @property
    def cost(self) -> str:
        return costs.in_words(costs.cost(self.tokens_in, self.tokens_out))


@dataclass(frozen=True, slots=True)
class Figures:
    user: AbstractBaseUser
    conversations: int
    messages: int
    used_today: int
    budget: int  # 0: no limit
    allowance: Allowance | None
    days: int = DAYS
    uses: list[Use] = field(default_factory=list)
    has_prices: bool = False

    @property
    def tokens(self) -> int:
        return sum(use.tokens for use in self.uses)

    @property
    def cost(self) -> str:
        tokens_in = sum(use.tokens_in for use in self.uses)
        tokens_out = sum(use.tokens_out for use in self.uses)
        return costs.in_words(costs.cost(tokens_in, tokens_out))


def figures_of(user: AbstractBaseUser) -> Figures:
    stored = Allowance.objects.filter(user=user).first()
    allowance = stored or Allowance(user=user)
    return Figures(
        user=user,
        conversations=Conversation.objects.filter(owner=user).count(),
        messages=Message.objects.filter(conversation__owner=user).count(),
        used_today=limits.used_on(allowance, timezone.localdate()),
        budget=limits.budget_of(allowance),
        allowance=stored,
        uses=_uses(user),
        has_prices=costs.has_prices(),
    )


def _uses(user: AbstractBaseUser) -> list[Use]:
    """By day and model, the latest day first."""
    since = timezone.now() - timedelta(days=DAYS)
    rows = (
        ModelCall.objects.filter(
            conversation__owner=user,
            # So that the index by conversation, purpose and time serves.
            purpose__in=ModelCall.Purpose.values,
            created_at__gte=since,
        )
        .annotate(day=TruncDate("created_at"))
        .values("day", "model")
        .annotate(**costs.sums())
        .order_by("-day", "model")
    )
    return [Use(**row) for row in rows]
