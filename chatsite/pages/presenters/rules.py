"""The rules and the facts of a request, as they are sent."""

from dataclasses import dataclass

from memory import context, prompts
from memory.models import Conversation
from memory.rules.rule_source import StandingRule, rebuild_rules, restore_facts


@dataclass(frozen=True, slots=True)
class SentRule:
    """A rule or fact as it is sent.

    It has the number of its message, 0 for none, and its date; `pk` is None in a
    request of the past. `place`: the conversation and message that a fact is from.
    """

    seq: int
    date: str
    text: str
    pk: int | None = None
    is_confirmed: bool = True
    place: str = ""

    @classmethod
    def from_rule(cls, rule: StandingRule) -> "SentRule":
        block = rule.block
        return cls(block.seq, block.date, block.text, rule.pk, rule.is_confirmed)


def list_sent_rules(
    conversation: Conversation, built: context.RequestContext
) -> tuple[SentRule, ...]:
    """Return the rules of a request: of the next one, or of one of the past."""
    if built.view:
        return tuple(map(SentRule.from_rule, built.view.rules))
    blocks = rebuild_rules(conversation, built.refs["rules"], built.texts)
    return tuple(SentRule(each.seq, each.date, each.text) for each in blocks)


def list_sent_facts(built: context.RequestContext) -> tuple[SentRule, ...]:
    """Return the facts of a request, with where each is from."""
    refs = prompts.facts_in(built.refs)
    blocks = restore_facts(refs, built.texts)
    return tuple(
        SentRule(0, block.date, block.text, place=place)
        for (place, _name), block in zip(refs, blocks, strict=True)
    )
