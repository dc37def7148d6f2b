"""The messages that are sent before those of the client's body.

They are the summaries, the pinned messages that these cover, and the rules in force, as
in the chat. They are stored by reference only, so nothing of them outlives what it
quotes.
"""

from typing import Any, NamedTuple

from memory import context, versions
from memory.context import ConversationView
from memory.engine import budget
from memory.engine.compose import Context, compose_context
from memory.engine.rules import choice
from memory.models import Conversation, ModelCall, Summary, read_langchain
from memory.rules import rule_source
from memory.view import rebuilding

from .body_cutting import write_preamble

# Replaces the references to what is in the body itself.
OF_BODY: dict[str, Any] = {
    **{"system": "", "window": [], "newest": None, "steps": [], "recalled": []}
}


class Preamble(NamedTuple):
    """The messages before the client's own.

    Their references, the texts these name by hash, their JSON, and the number of the
    last message that they cover.
    """

    refs: dict[str, Any]
    texts: dict[str, str]
    written: str
    cutoff: int


def make_preamble(
    conversation: Conversation, summaries: list[Summary], limit: int
) -> Preamble:
    cutoff = versions.last_covered(summaries)
    rows = context.visible_messages(conversation).filter(seq__lte=cutoff)
    pinned = read_langchain(rows.filter(pinned_at__isnull=False))
    rules = choice.choose_rules(
        rule_source.find_source("rules").list_standing(conversation),
        room=budget.for_rules(limit),
        count_tokens=context.conversation_counter(conversation),
    )
    composed = compose_context(
        system_prompt="",
        blocks=[versions.to_block(summary) for summary in summaries],
        pinned=pinned,
        rules=[rule.block for rule in rules],
        fence=context.get_fence(conversation),
    )
    version = conversation.memory_version
    view = ConversationView(
        composed, summaries, pinned, [], [], None, version, rules=rules
    )
    refs, texts = context.refer_prefix(conversation, view)
    # The instructions are in the client's body.
    texts.pop(refs.pop("system"))
    return Preamble(refs, texts, write_context(composed), cutoff)


def read_preamble(call: ModelCall) -> Context:
    """Rebuild the preamble of a request from its references alone."""
    refs = {name: each for name, each in call.refs.items() if name != "client"}
    alike = ModelCall(conversation=call.conversation, refs={**refs, **OF_BODY})
    alike.tokens_estimated = 0
    return rebuilding.recompose_contexts([alike])[0].context


def write_context(composed: Context) -> str:
    return write_preamble(str(message.content) for message in composed.messages)
