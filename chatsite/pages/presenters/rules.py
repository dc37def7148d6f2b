"""The rules, facts and tools of a request, as they are sent."""

import json
from dataclasses import dataclass
from typing import Any

from chatsite.features.tools import registry
from memory import context, prompts
from memory.models import Conversation
from memory.rules.rule_source import StandingRule, rebuild_rules, restore_facts
from memory.view.variation import name_statement


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
    # The key by which it is switched off.
    key: str = ""
    is_off: bool = False

    @classmethod
    def from_rule(cls, rule: StandingRule) -> "SentRule":
        block, key = rule.block, name_statement("rule", rule.ref)
        said = (block.seq, block.date, block.text)
        return cls(*said, rule.pk, rule.is_confirmed, key=key)


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
    rows = built.view.facts if built.view else ()
    known = {name_statement("fact", fact.ref): fact.pk for fact in rows}
    return tuple(
        SentRule(
            *(0, block.date, block.text),
            pk=known.get(name_statement("fact", ref)),
            place=ref[0],
            key=name_statement("fact", ref),
        )
        for ref, block in zip(refs, blocks, strict=True)
    )


@dataclass(frozen=True, slots=True)
class SentTool:
    """The definition of a tool in a request, and how people call the tool."""

    label: str
    description: str
    # As JSON.
    schema: str

    @classmethod
    def from_definition(cls, definition: Any) -> "SentTool":
        """Return the tool of a definition in the form of any API, client or file."""
        known = definition if isinstance(definition, dict) else {}
        function = known.get("function")
        function = function if isinstance(function, dict) else known
        name = str(function.get("name", known.get("type", "")))
        text = json.dumps(definition, ensure_ascii=False, indent=2)
        description = str(function.get("description", ""))
        return cls(registry.label_of(name) or name, description, text)
