"""The choice of rules for a request in which not all of them fit."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from langchain_core.messages import HumanMessage

from ..compose import RuleBlock, quote_rule
from ..tokens import TokenCounter


class ActiveRule(Protocol):
    """A rule in force. Confirmed ones are always sent."""

    is_confirmed: bool

    @property
    def block(self) -> RuleBlock: ...


R = TypeVar("R", bound=ActiveRule)


def make_rule_counter(count_tokens: TokenCounter) -> Callable[[RuleBlock], int]:
    """Return a function that counts the tokens of a rule, never too few."""
    nothing = count_tokens([HumanMessage("")])

    def count(block: RuleBlock) -> int:
        # One more, because the count of each part is rounded on its own.
        return count_tokens([HumanMessage(quote_rule(block) + "\n")]) - nothing + 1

    return count


def choose_rules(
    rules: Sequence[R], *, room: int, count_tokens: TokenCounter
) -> list[R]:
    """Return all confirmed rules, and the newest others that fit beside them.

    `room` is in tokens. `rules` and the result are ordered from oldest to newest.
    """
    count = make_rule_counter(count_tokens)
    room -= sum(count(rule.block) for rule in rules if rule.is_confirmed)
    kept = []
    is_full = False
    for rule in reversed(rules):
        if not rule.is_confirmed:
            # The oldest leave first, even if a short one would still fit.
            room -= count(rule.block)
            is_full = is_full or room < 0
            if is_full:
                continue
        kept.append(rule)
    return kept[::-1]
