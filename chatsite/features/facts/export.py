"""Facts in the files of an export, as JSON that an import reads."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from django.utils.translation import gettext as _
from pydantic import BaseModel, Field

from chatsite.features.statements.rows import describe_lost, is_stated, read_rows
from chatsite.plugins import Seq, Time
from memory import bundle
from memory.engine.facts.detection import MAX_CHARS
from memory.models import Conversation, Message

from .models import Fact
from .store import MOST_OFFERED, MOST_PAST

State = Fact.State
PAST = (State.DISMISSED, State.REPLACED)
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]


class FactRow(BaseModel):
    """A user's words about themselves.

    They are from `start` to `end` of the text of message `seq`, or, since `worded_at`,
    the words of `text`.
    """

    seq: Seq
    start: Count
    end: Count
    text: Annotated[str, Field(max_length=MAX_CHARS)] = ""
    worded_at: Time = None
    state: Literal[*State.values]
    created_at: Time = None


def read_exported_facts(conversation: Conversation) -> list[dict[str, Any]]:
    return read_rows(conversation.facts, FactRow)


def write_exported_facts(
    conversation: Conversation,
    messages: Mapping[int, Message],
    rows: Sequence[FactRow],
    batch: bundle.Batch = bundle.at_once,
) -> str:
    """Store the facts that are a part of a user's message.

    A file can say anything, so a fact that was kept in it is only offered here, and it
    displaces no others. Return a sentence on those for which there is no room.
    """
    said = [row for row in rows if is_stated(messages.get(row.seq), row, MAX_CHARS)]
    past = [row for row in said if row.state in PAST]
    offered = [row for row in said if row.state not in PAST]
    made: dict[tuple[int, int], Fact] = {}
    with batch(0):
        known = Fact.objects.filter(owner=conversation.owner_id)
        room = max(0, MOST_OFFERED - known.filter(state=State.OFFERED).count())
        room_past = max(0, MOST_PAST - known.filter(state__in=PAST).count())
        for row in (*offered[:room], *past[:room_past]):
            fact = Fact(
                owner_id=conversation.owner_id,
                conversation=conversation,
                message=messages[row.seq],
                state=row.state if row.state in PAST else State.OFFERED,
                **row.model_dump(include={"start", "end", "text", "worded_at"}),
            )
            made.setdefault((row.seq, row.start), fact)
        Fact.objects.bulk_create(made.values())
    return describe_lost(_("facts"), len(offered) - room, MOST_OFFERED)
