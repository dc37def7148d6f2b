"""Rules of a conversation that is not in a database, kept without confirmation."""

from dataclasses import dataclass

from langchain_core.messages import BaseMessage

from ..compose import RuleBlock, time_of
from ..tokens import TokenCounter, count_tokens
from .choice import choose_rules
from .detection import find_cancellations, find_replaced, find_rules


@dataclass(frozen=True, slots=True)
class KeptRule:
    block: RuleBlock
    is_confirmed: bool = False


class RuleKeeper:
    """The rules in a user's messages.

    `blocks` are the rules of the next request, for `compose_context(rules=...)`. `room`
    is their limit in tokens.
    """

    def __init__(self, room: int, count_tokens: TokenCounter = count_tokens) -> None:
        self.room, self.count_tokens = room, count_tokens
        self.blocks: list[RuleBlock] = []

    def detect_rules(self, message: BaseMessage) -> None:
        """Update the rules with a message of the user, whose id is its number."""
        time = time_of(message)
        date = f"{time:%Y-%m-%d}" if time else ""
        said = [
            RuleBlock(int(message.id or 0), date, message.text[each.start : each.end])
            for each in find_rules(message.text)
        ]
        texts = [rule.text for rule in said]
        texts += find_cancellations(message.text) if self.blocks else []
        known = [rule.text for rule in self.blocks]
        gone = {place for text in texts for place in find_replaced(text, known)}
        kept = [rule for n, rule in enumerate(self.blocks) if n not in gone]
        standing = [KeptRule(rule) for rule in (*kept, *said)]
        chosen = choose_rules(standing, room=self.room, count_tokens=self.count_tokens)
        self.blocks = [rule.block for rule in chosen]
