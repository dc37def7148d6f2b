"""The costs of replaying a recorded conversation, counted and added up."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from os.path import commonprefix
from statistics import mean, median
from typing import Any

from langchain_core.messages import BaseMessage

from memory.engine.policy import CACHED_PRICE
from memory.engine.tokens import count_message, count_text
from memory.engine.triggers import WRITTEN_PRICE

# Providers cache prompts from this length on, and in steps.
CACHE_MIN, CACHE_STEP = 1024, 128


@dataclass(slots=True)
class Tally:
    """The counts of a replay; tallies of several conversations can be added."""

    turns: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    summary_tokens_in: int = 0
    summary_tokens_cached: int = 0
    summary_tokens_out: int = 0
    blocked_turns: int = 0
    never_read: int = 0
    without_user_message: int = 0
    # Beside the prompts: the tokens that notes of a search add, the turns with notes,
    # and the tokens of prompts with notes that a provider can cache.
    recall_tokens: int = 0
    turns_with_recall: int = 0
    cached_with_recall: int = 0
    # Messages that are too large for any request in the model's window.
    refused_turns: int = 0
    prompts: list[int] = field(default_factory=list)
    rewrites: list[int] = field(default_factory=list)
    in_window: list[float] = field(default_factory=list)
    reachable: list[float] = field(default_factory=list)
    recall_at_5: list[float] = field(default_factory=list)
    recall_at_10: list[float] = field(default_factory=list)
    newest_in_request: list[float] = field(default_factory=list)
    # The questions: their tokens and places.
    asked: list[tuple[int, str]] = field(default_factory=list)

    def __add__(self, other: "Tally") -> "Tally":
        names = [each.name for each in fields(self)]
        return Tally(*(getattr(self, name) + getattr(other, name) for name in names))

    @property
    def cost(self) -> float:
        cached = self.cached_tokens + self.summary_tokens_cached
        fresh = self.prompt_tokens + self.summary_tokens_in - cached
        return fresh + CACHED_PRICE * cached + WRITTEN_PRICE * self.summary_tokens_out

    @property
    def cost_with_recall(self) -> float:
        lost = self.cached_tokens - self.cached_with_recall
        return self.cost + self.recall_tokens + (1 - CACHED_PRICE) * lost

    def make_report(self) -> dict[str, Any]:
        """Return the documented keys; shares are 0..1, None without questions."""
        turns = max(self.turns, 1)
        largest, place = max(self.asked, default=(0, ""))
        return {
            "turns": self.turns,
            "prompt_tokens_per_turn": round(self.prompt_tokens / turns, 1),
            "cacheable_share": round(
                self.cached_tokens / max(self.prompt_tokens, 1), 4
            ),
            "effective_cost_per_turn": round(self.cost / turns, 1),
            "recall_tokens_per_turn": round(self.recall_tokens / turns, 1),
            "turns_with_recall": self.turns_with_recall,
            "cost_with_recall_per_turn": round(self.cost_with_recall / turns, 1),
            "blocked_turns": self.blocked_turns,
            "largest_prompt": max(self.prompts, default=0),
            "refused_turns": self.refused_turns,
            "largest_message": largest,
            "largest_message_id": place,
            "rewrites_median": median(self.rewrites or [0]),
            "rewrites_max": max(self.rewrites, default=0),
            "never_read": self.never_read,
            "without_user_message": self.without_user_message,
            "evidence_in_window": _round_mean(self.in_window),
            "evidence_reachable": _round_mean(self.reachable),
            "recall_at_5": _round_mean(self.recall_at_5),
            "recall_at_10": _round_mean(self.recall_at_10),
            "newest_in_request": _round_mean(self.newest_in_request),
        }


def shared_tokens(old: Sequence[BaseMessage], new: Sequence[BaseMessage]) -> int:
    """Return the tokens of the beginning that two requests have in common."""
    tokens = 0
    for before, after in zip(old, new, strict=False):
        if before.type != after.type:
            break
        if before.text != after.text:
            return tokens + count_text(commonprefix([before.text, after.text]))
        tokens += count_message(after)
    return tokens


def count_cacheable(tokens: int) -> int:
    return tokens // CACHE_STEP * CACHE_STEP if tokens >= CACHE_MIN else 0


def _round_mean(values: Sequence[float]) -> float | None:
    return round(mean(values), 4) if values else None
