"""Rules kept by themselves, for a conversation that is in no database."""

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
    """Listens to the messages of a person. `blocks`: what the next request is sent, for
    `compose(rules=...)`. `room`: the tokens that it may take."""

    def __init__(self, room: int, count_tokens: TokenCounter = count_tokens) -> None:
        self.room, self.count_tokens = room, count_tokens
        self.blocks: list[RuleBlock] = []

    def detect_rules(self, message: BaseMessage) -> None:
        """A message of the person, whose id is its number."""
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
