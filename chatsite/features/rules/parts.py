"""What is drawn of rules: below the message that states them, and in the right pane."""

from django.template.loader import render_to_string

from chatsite.features.statements.parts import (
    ShownStatement,
    group_by_message,
    make_message_part,
)
from chatsite.pages.presenters.context_pane import ContextSection
from chatsite.pages.presenters.rules import SentRule
from memory import context
from memory.models import Conversation

from .models import Rule
from .store import list_standing_rules, with_rule_words

MAX_REPLACED = 20


def list_stated_rules(
    conversation: Conversation, first: int, end: int | None
) -> dict[int, tuple[ShownStatement, ...]]:
    """What is offered, or in force, of the messages from `first` to before `end` that
    the model may see, by their numbers."""
    if not conversation.rule_count:
        return {}
    rows = conversation.rules.filter(
        state__in=Rule.OPEN, message__excluded_at=None, message__superseded_at=None
    )
    return group_by_message(with_rule_words(rows), first, end)


draw_stated_rules = make_message_part("rules")
ROWS = {"rules": list_stated_rules}


def draw_section(conversation: Conversation, section: ContextSection) -> str:
    """The rules of a request, with what can be done about those of the next one."""
    values = {"conversation": conversation, "section": section}
    return render_to_string("rules/_section.html", values)


def draw_other_rules(conversation: Conversation, built: context.RequestContext) -> str:
    """What the next request does not have: rules that it has no room for, and those
    that later words of the person have replaced."""
    left_out = list_left_out_rules(conversation, built)
    replaced, count = list_replaced_rules(conversation)
    if not (left_out or replaced):
        return ""
    values = {"conversation": conversation, "left_out": left_out, "replaced": replaced}
    return render_to_string("rules/_others.html", {**values, "replaced_count": count})


def list_left_out_rules(
    conversation: Conversation, built: context.RequestContext
) -> list[SentRule]:
    """Those in force for which the next request has no room."""
    chosen = {rule.pk for rule in built.view.rules}
    # Those of the message that waits for its reply come with the one after it.
    standing = list_standing_rules(conversation, built.refs["newest"])
    return [SentRule.from_rule(rule) for rule in standing if rule.pk not in chosen]


def list_replaced_rules(conversation: Conversation) -> tuple[list[SentRule], int]:
    """The latest that later words of the person have replaced, and how many there
    are."""
    if not conversation.rule_count:
        return [], 0
    gone = conversation.rules.filter(state=Rule.State.REPLACED).order_by("-pk")
    shown = [
        SentRule(row.seq, f"{row.said_at:%Y-%m-%d}", row.words, row.pk)
        for row in with_rule_words(gone)[:MAX_REPLACED]
    ]
    return shown, gone.count() if len(shown) == MAX_REPLACED else len(shown)
