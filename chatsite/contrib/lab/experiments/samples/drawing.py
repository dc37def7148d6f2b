"""Draws the conversations of a sample, and estimates the maximum cost."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Max, Q, QuerySet, Sum
from django.db.models.aggregates import Count
from django.utils import timezone

from chatsite.llm import pricing, providers
from chatsite.review.redaction import select_lasting
from chatsite.turns import requests
from memory import context
from memory.engine.policy import DEFAULT_PRESET
from memory.models import Conversation

from ..models import Experiment

# Maximum of conversations to draw from: the last that changed.
MAX_DRAWN_FROM = 20_000
# Maximum of messages in all conversations of one sample.
MAX_MESSAGES = 20_000
# Times that the own policy of each conversation is played.
REPLAYS = 2
# Tokens that a summariser reads and writes: per token of the transcript, per message,
# as they may be summarised a few at a time, and at least per conversation.
PER_TOKEN, PER_MESSAGE, AT_LEAST = 4, 300, 2_000


@dataclass(frozen=True, slots=True)
class Drawn:
    """A conversation of a sample, and the size of the messages that are played."""

    conversation: Conversation
    messages: int
    tokens: int
    last_seq: int
    # The model that writes the summaries.
    model: str

    @property
    def budget(self) -> int:
        """Maximum tokens each time that the conversation is played."""
        return AT_LEAST + PER_TOKEN * self.tokens + PER_MESSAGE * self.messages

    @property
    def price(self) -> float:
        """Maximum price in dollars, as if all tokens were written, which costs more."""
        return pricing.price_tokens(self.model, 0, self.budget)

    def make_experiment(
        self, user_id: int, policy: dict[str, Any], budget: int, **values: Any
    ) -> Experiment:
        """Return an unsaved, waiting experiment with this policy."""
        return Experiment(
            conversation=self.conversation,
            user_id=user_id,
            policy=policy,
            model=self.model,
            budget=budget,
            last_seq=self.last_seq,
            all_messages=self.messages,
            **values,
        )


def draw_conversations(
    *, number: int, seed: int, least: int, preset: str, model: str, days: int | None
) -> list[Drawn]:
    """Draw at most `number` conversations of those that match the filters.

    Conversations are ordered by a hash of seed and id, so the same seed draws the
    same ones as long as they exist. Those without visible messages are left out.
    """
    rows = _select_sampled(least, preset, model, days)
    newest = rows.order_by("-updated_at", "-pk").values_list("pk", "uuid")
    mixed = sorted((_mix(seed, uuid), pk) for pk, uuid in newest[:MAX_DRAWN_FROM])
    chosen = [pk for _place, pk in mixed[:number]]
    found = Conversation.objects.in_bulk(chosen)
    measured = (measure_conversation(found[pk]) for pk in chosen if pk in found)
    return [each for each in measured if each.messages]


def _mix(seed: int, uuid: Any) -> bytes:
    return hashlib.sha256(f"{seed} {uuid}".encode()).digest()


def _select_sampled(
    least: int, preset: str, model: str, days: int | None
) -> QuerySet[Conversation]:
    # Messages are numbered from 1.
    rows = select_lasting().filter(deleted_at=None, next_seq__gt=least)
    if preset:
        unnamed = Q(policy__preset__isnull=True) if preset == DEFAULT_PRESET else Q()
        rows = rows.filter(Q(policy__preset=preset) | unnamed)
    if model:
        rows = rows.filter(model=requests.name_to_store(model))
    if days:
        rows = rows.filter(updated_at__gte=timezone.now() - timedelta(days=days))
    return rows


def measure_conversation(conversation: Conversation) -> Drawn:
    rows = context.visible_messages(conversation)
    size = rows.aggregate(count=Count("pk"), tokens=Sum("tokens"), last=Max("seq"))
    model = providers.summary_model(requests.model_of(conversation))
    return Drawn(
        conversation, size["count"], size["tokens"] or 0, size["last"] or 0, model
    )


def sum_budgets(drawn: Sequence[Drawn], policies: int) -> int:
    return (REPLAYS + policies) * sum(each.budget for each in drawn)
