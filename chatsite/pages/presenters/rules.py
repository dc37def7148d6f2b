"""The rules of a conversation for both panes: those that a message states, and those
that the model is sent, or is not.
"""

from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from memory import context
from memory.models import Conversation, Rule
from memory.rules import store

MAX_REPLACED = 20


@dataclass(frozen=True, slots=True)
class StatedRule:
    """A rule that a message states, in the words that the person uses for it."""

    pk: int
    text: str
    state: str


@dataclass(frozen=True, slots=True)
class SentRule:
    """A rule as it is sent: with the number of its message, 0 for none, and its date;
    `pk` is None in a request of the past."""

    seq: int
    date: str
    text: str
    pk: int | None = None
    is_confirmed: bool = True


def stated(
    conversation: Conversation, first: int, end: int | None
) -> dict[int, tuple[StatedRule, ...]]:
    """What is offered, or in force, of the messages from `first` to before `end` that
    the model may see, by their numbers."""
    if not conversation.rule_count:
        return {}
    rows = conversation.rules.filter(state__in=Rule.OPEN, message__seq__gte=first)
    rows = rows.filter(message__excluded_at=None, message__superseded_at=None)
    if end:
        rows = rows.filter(message__seq__lt=end)
    found = store.with_words(rows).order_by("seq", "start")
    values = found.values_list("seq", "pk", "words", "state")
    return {
        seq: tuple(StatedRule(*row[1:]) for row in group)
        for seq, group in groupby(values, key=itemgetter(0))
    }


def sent(conversation: Conversation, built: context.Built) -> tuple[SentRule, ...]:
    """The rules of a request: of the next one, or of one of the past."""
    if built.view:
        return tuple(map(_of_standing, built.view.rules))
    blocks = store.rebuild(conversation, built.refs["rules"], built.texts)
    return tuple(SentRule(each.seq, each.date, each.text) for each in blocks)


def left_out(conversation: Conversation, built: context.Built) -> tuple[SentRule, ...]:
    """Those in force for which the next request has no room."""
    chosen = {rule.pk for rule in built.view.rules}
    # Those of the message that waits for its reply come with the one after it.
    standing = store.standing(conversation, before=built.refs["newest"])
    return tuple(_of_standing(rule) for rule in standing if rule.pk not in chosen)


def replaced(conversation: Conversation) -> tuple[tuple[SentRule, ...], int]:
    """The latest that later words of the person have replaced, and how many there
    are."""
    if not conversation.rule_count:
        return (), 0
    gone = conversation.rules.filter(state=Rule.State.REPLACED).order_by("-pk")
    shown = tuple(
        SentRule(row.seq, f"{row.said_at:%Y-%m-%d}", row.words, row.pk)
        for row in store.with_words(gone)[:MAX_REPLACED]
    )
    return shown, gone.count() if len(shown) == MAX_REPLACED else len(shown)


def _of_standing(rule: store.StandingRule) -> SentRule:
    block = rule.block
    return SentRule(block.seq, block.date, block.text, rule.pk, rule.is_confirmed)
