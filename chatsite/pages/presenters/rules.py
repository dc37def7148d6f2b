"""The rules of a request, as they are sent."""

from dataclasses import dataclass

from memory import context
from memory.models import Conversation
from memory.rules.rule_source import StandingRule, rebuild_rules


@dataclass(frozen=True, slots=True)
class SentRule:
    """A rule as it is sent: with the number of its message, 0 for none, and its date;
    `pk` is None in a request of the past."""

    seq: int
    date: str
    text: str
    pk: int | None = None
    is_confirmed: bool = True

    @classmethod
    def of(cls, rule: StandingRule) -> "SentRule":
        block = rule.block
        return cls(block.seq, block.date, block.text, rule.pk, rule.is_confirmed)


def list_sent_rules(
    conversation: Conversation, built: context.Built
) -> tuple[SentRule, ...]:
    """The rules of a request: of the next one, or of one of the past."""
    if built.view:
        return tuple(map(SentRule.of, built.view.rules))
    blocks = rebuild_rules(conversation, built.refs["rules"], built.texts)
    return tuple(SentRule(each.seq, each.date, each.text) for each in blocks)
