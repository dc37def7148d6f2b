"""Rules in a branch and in the files of an export, as JSON that an import reads."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from django.db.models import Q
from django.utils.translation import gettext as _
from pydantic import BaseModel, Field

from chatsite.features.statements.rows import describe_lost, is_stated, read_rows
from chatsite.plugins import Seq, Time
from memory import bundle
from memory.engine.rules.detection import MAX_CHARS
from memory.models import Conversation, Message

from .models import Rule
from .store import MOST_UNCONFIRMED, bound_rules

# The limit of one file.
MOST = 1_000

Count = Annotated[int, Field(ge=0, le=2**31 - 2)]


class RuleRow(BaseModel):
    """A rule of a user for the whole conversation.

    It is from `start` to `end` of the text of message `seq`, or the words of `text`.
    """

    seq: Seq | None = None
    start: Count = 0
    end: Count = 0
    text: Annotated[str, Field(max_length=MAX_CHARS)] = ""
    kind: Literal["", *Rule.RuleKind.values] = ""
    state: Literal[*Rule.State.values]
    created_at: Time = None


def read_rules(conversation: Conversation) -> list[dict[str, Any]]:
    return read_rows(conversation.rules, RuleRow)


def write_rules(
    conversation: Conversation,
    messages: Mapping[int, Message],
    rows: Sequence[RuleRow],
    batch: bundle.Batch = bundle.at_once,
) -> str:
    """Store the rules that are a part of a user's message, and those of no message.

    A file can say anything, so a rule that was in force in it is only offered here.
    Return a sentence on those for which there is no room.
    """
    made = {}
    for row in rows[:MOST]:
        message = messages.get(row.seq)
        if not (
            is_stated(message, row, MAX_CHARS)
            if message
            else row.seq is None and row.text
        ):
            continue
        in_force = row.state in Rule.IN_FORCE
        state = Rule.State.OFFERED if in_force else row.state
        values = row.model_dump(include={"start", "end", "text", "kind"})
        rule = Rule(conversation=conversation, message=message, state=state, **values)
        made.setdefault((row.seq, row.start if message else row.text), rule)
    if made:
        with batch(0):
            Rule.objects.bulk_create(made.values())
            bound_rules(conversation)
    offers = [rule for rule in made.values() if rule.state == Rule.State.OFFERED]
    lost = max(0, len(offers) - MOST_UNCONFIRMED) + max(0, len(rows) - MOST)
    return describe_lost(_("rules"), lost, MOST_UNCONFIRMED)


def copy_rules(
    conversation: Conversation, branch: Conversation, messages: Mapping[int, Message]
) -> None:
    """Copy the rules of messages that the branch has, and those of no message."""
    rows = conversation.rules.filter(Q(message=None) | Q(message__seq__in=messages))
    made = [
        Rule(conversation=branch, message=messages.get(row.pop("seq")), **row)
        for row in read_rows(rows, RuleRow)
    ]
    if made:
        Rule.objects.bulk_create(made)
        bound_rules(branch)
