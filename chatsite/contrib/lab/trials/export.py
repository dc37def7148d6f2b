"""Trials in the files of an export, and as an import reads them."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from django.conf import settings
from django.db.models import F
from pydantic import BaseModel, Field

from chatsite.llm.gathered import MAX_READ_CALLS
from chatsite.llm.streaming import MAX_REPLY_CHARS
from chatsite.plugins import Seq, Time
from memory import bundle
from memory.models import Conversation, Message, ModelCall
from memory.view.variation import KEY_CHARS, MOST_OFF

from .models import Trial

COLUMNS = ("words", "model", "state", "text", "asked", "error")

Number = Annotated[int, Field(ge=0, le=2**31 - 1)]
PartKey = Annotated[str, Field(max_length=KEY_CHARS)]


class Changes(BaseModel):
    """The differences from the request of the reply; what is not named is the same."""

    model: Annotated[str, Field(max_length=100)] = ""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    preset: Annotated[str, Field(max_length=20)] = ""
    without_recall: bool = False
    without_summaries: bool = False
    edited: Number = 0
    left_out: Number = 0
    brought_back: Number = 0
    off: Annotated[list[PartKey], Field(max_length=MOST_OFF)] = []
    now: bool = False


class TrialRow(BaseModel):
    """Another version of reply `seq`.

    `sha256` is that of its request, and `asked` are the names of tools that the model
    asked for.
    """

    seq: Seq
    changes: Changes
    words: Annotated[str, Field(max_length=MAX_REPLY_CHARS)] = ""
    model: Annotated[str, Field(max_length=100)]
    state: Literal[*sorted({*Trial.State} - {*Trial.UNFINISHED})]
    text: Annotated[str, Field(max_length=MAX_REPLY_CHARS)] = ""
    asked: Annotated[list[str], Field(max_length=MAX_READ_CALLS + 1)] = []
    error: Annotated[str, Field(max_length=100)] = ""
    sha256: Annotated[str, Field(max_length=64)] | None = None
    created_at: Time = None
    finished_at: Time = None


def read_trials(conversation: Conversation) -> list[dict[str, Any]]:
    rows = conversation.trials.exclude(state__in=Trial.UNFINISHED).order_by("pk")
    columns = (*COLUMNS, "changes", "created_at", "finished_at")
    named = {"seq": F("message__seq"), "sha256": F("call__sha256")}
    return list(rows.values(*columns, **named))


def write_trials(
    conversation: Conversation,
    messages: Mapping[int, Message],
    rows: Sequence[TrialRow],
    batch: bundle.Batch = bundle.at_once,
) -> None:
    """Store the trials of replies that are there.

    Their requests come with them as far as these are proved.
    """
    requests: dict[str, list[ModelCall]] = {}
    for call in conversation.model_calls.filter(purpose=ModelCall.Purpose.TRIAL):
        requests.setdefault(call.sha256, []).append(call)
    known = [
        row
        for row in rows
        if row.seq in messages
        and messages[row.seq].role == Message.Role.ASSISTANT
        and not messages[row.seq].deleted_at
        and len(row.words) <= settings.MESSAGE_MAX_CHARS
    ]
    for some in bundle.batches(known, lambda row: len(row.text) + len(row.words)):
        made = [
            Trial(
                conversation=conversation,
                message=messages[row.seq],
                changes=row.changes.model_dump(exclude_defaults=True),
                **row.model_dump(include={*COLUMNS}),
                call=requests[row.sha256].pop(0) if requests.get(row.sha256) else None,
                finished_at=row.finished_at or row.created_at,
            )
            for row in some
        ]
        with batch(0):
            bundle.create_dated(made, some)
