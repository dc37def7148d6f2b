"""Which rules are in a request, when not all of them fit."""

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
    """What a rule takes of a context, in tokens, never too little."""
    nothing = count_tokens([HumanMessage("")])

    def count(block: RuleBlock) -> int:
        # One more, as the counts of parts are rounded each for itself.
        return count_tokens([HumanMessage(quote_rule(block) + "\n")]) - nothing + 1

    return count


def choose_rules(
    rules: Sequence[R], *, room: int, count_tokens: TokenCounter
) -> list[R]:
    """All confirmed rules, and of the others the newest that fit into `room` tokens
    beside them. `rules` are the oldest first, and so is the result."""
    count = make_rule_counter(count_tokens)
    room -= sum(count(rule.block) for rule in rules if rule.is_confirmed)
    kept = []
    is_full = False
    for rule in reversed(rules):
        if not rule.is_confirmed:
            # The oldest leave first: none of them stays for being short.
            room -= count(rule.block)
            is_full = is_full or room < 0
            if is_full:
                continue
        kept.append(rule)
    return kept[::-1]
