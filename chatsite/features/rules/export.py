"""Rules in a branch and in the files of an export, as JSON that an import reads."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from django.db.models import F, Q
from pydantic import BaseModel, Field

from chatsite.plugins import Seq, Time
from memory import bundle
from memory.engine.rules.detection import MAX_CHARS
from memory.models import Conversation, Message

from .models import Rule
from .store import bound_rules

COLUMNS = ("start", "end", "text", "kind", "state", "created_at")
# Of one file.
MOST = 1_000

Count = Annotated[int, Field(ge=0, le=2**31 - 2)]


class RuleRow(BaseModel):
    """What a person wants to hold for the whole conversation: from `start` to `end` of
    the text of message `seq`, or in the words of `text`."""

    seq: Seq | None = None
    start: Count = 0
    end: Count = 0
    text: Annotated[str, Field(max_length=MAX_CHARS)] = ""
    kind: Literal["", *Rule.Kind.values] = ""
    state: Literal[*Rule.State.values]
    created_at: Time = None


def read_rules(conversation: Conversation) -> list[dict[str, Any]]:
    rows = conversation.rules.order_by("pk")
    return list(rows.values(*COLUMNS, seq=F("message__seq")))


def write_rules(
    conversation: Conversation,
    messages: Mapping[int, Message],
    rows: Sequence[RuleRow],
    batch: bundle.Batch = bundle.at_once,
) -> None:
    """Load the rules that are a part of what the person said, and those of no message,
    in their own words. A file can say anything, so what was in force in it is only
    offered here."""
    made = {}
    for row in rows[:MOST]:
        message = messages.get(row.seq)
        if not (_is_part(message, row) if message else row.seq is None and row.text):
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


def _is_part(message: Message, row: RuleRow) -> bool:
    is_said = message.role == Message.Role.USER and not message.deleted_at
    is_short = row.end - row.start <= MAX_CHARS
    return is_said and is_short and row.start < row.end <= len(message.text)


def copy_rules(
    conversation: Conversation, branch: Conversation, messages: Mapping[int, Message]
) -> None:
    """The rules of messages that the branch has, and of none, as they are."""
    rows = conversation.rules.order_by("pk")
    rows = rows.filter(Q(message=None) | Q(message__seq__in=messages))
    made = [
        Rule(conversation=branch, message=messages.get(row.pop("seq")), **row)
        for row in rows.values(*COLUMNS, seq=F("message__seq"))
    ]
    if made:
        Rule.objects.bulk_create(made)
        bound_rules(branch)
