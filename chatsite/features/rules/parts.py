"""The page parts of rules: below their message, and in the right pane."""

from django.template.loader import render_to_string

from chatsite.features.statements.parts import (
    ShownStatement,
    group_by_message,
    make_message_part,
)
from chatsite.pages.presenters.rules import SentRule
from memory import context
from memory.models import Conversation

from .models import Rule
from .store import list_standing_rules, with_rule_words

MAX_REPLACED = 20


def list_stated_rules(
    conversation: Conversation, first: int, end: int | None
) -> dict[int, tuple[ShownStatement, ...]]:
    """Return open rules of messages `first` to before `end`, by message number.

    Only messages that the model may see count.
    """
    if not conversation.rule_count:
        return {}
    rows = conversation.rules.filter(
        state__in=Rule.OPEN, message__excluded_at=None, message__superseded_at=None
    )
    found = group_by_message(with_rule_words(rows), first, end)
    if not conversation.get_policy().learns_facts:
        return found
    # They are asked about as facts, once.
    is_asked = Rule.State.OFFERED
    return {
        seq: tuple(r for r in rules if r.state != is_asked or not r.is_fact)
        for seq, rules in found.items()
    }


draw_stated_rules = make_message_part("rules")
ROWS = {"rules": list_stated_rules}


def draw_other_rules(conversation: Conversation, built: context.RequestContext) -> str:
    """Return the rules that the next request does not have.

    It has no room for them, or later words of the user have replaced them.
    """
    chosen = {rule.pk for rule in built.view.rules}
    # Rules of the message that waits for its reply are sent with the next one.
    standing = list_standing_rules(conversation, built.refs["newest"])
    # Those for which it has no room.
    left_out = [SentRule.from_rule(each) for each in standing if each.pk not in chosen]
    replaced, count = list_replaced_rules(conversation)
    if not (left_out or replaced):
        return ""
    values = {"conversation": conversation, "left_out": left_out, "replaced": replaced}
    return render_to_string("rules/_others.html", {**values, "replaced_count": count})


def list_replaced_rules(conversation: Conversation) -> tuple[list[SentRule], int]:
    """Return the latest rules that later words replaced, and their number."""
    if not conversation.rule_count:
        return [], 0
    gone = conversation.rules.filter(state=Rule.State.REPLACED).order_by("-pk")
    shown = [
        SentRule(row.seq, f"{row.said_at:%Y-%m-%d}", row.words, row.pk)
        for row in with_rule_words(gone)[:MAX_REPLACED]
    ]
    return shown, gone.count() if len(shown) == MAX_REPLACED else len(shown)
