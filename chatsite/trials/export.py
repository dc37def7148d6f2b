"""Trials in the files of an export, and as an import reads them."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from django.conf import settings
from django.db.models import F
from pydantic import BaseModel, Field

from chatsite.hooks import ExportSection, Seq, Time
from chatsite.llm.streaming import MAX_REPLY_CHARS
from memory import bundle
from memory.models import Conversation, Message

from .models import Trial

Number = Annotated[int, Field(ge=0, le=2**31 - 1)]


class Changes(BaseModel):
    """How the request differs from the one of the reply; what is not named does not."""

    model: Annotated[str, Field(max_length=100)] = ""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    preset: Annotated[str, Field(max_length=20)] = ""
    without_recall: bool = False
    without_summaries: bool = False
    edited: Number = 0
    left_out: Number = 0
    brought_back: Number = 0


class TrialRow(BaseModel):
    """What reply `seq` would have been. Its request is not exported: `sha256` says
    which it was."""

    seq: Seq
    changes: Changes
    words: Annotated[str, Field(max_length=MAX_REPLY_CHARS)] = ""
    model: Annotated[str, Field(max_length=100)]
    state: Literal["done", "stopped", "failed", "truncated", "interrupted"]
    text: Annotated[str, Field(max_length=MAX_REPLY_CHARS)] = ""
    sha256: Annotated[str, Field(max_length=64)] | None = None
    created_at: Time = None


def read_trials(conversation: Conversation) -> list[dict[str, Any]]:
    rows = conversation.trials.exclude(state__in=Trial.UNFINISHED).order_by("pk")
    columns = ("changes", "words", "model", "state", "text", "created_at")
    named = {"seq": F("message__seq"), "sha256": F("call__sha256")}
    return list(rows.values(*columns, **named))


def write_trials(
    conversation: Conversation,
    messages: Mapping[int, Message],
    rows: Sequence[TrialRow],
    batch: bundle.Batch = bundle.at_once,
) -> None:
    """Those of replies that are there, without their requests."""
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
                **row.model_dump(include={"words", "model", "state", "text"}),
                finished_at=row.created_at,
            )
            for row in some
        ]
        with batch(0):
            Trial.objects.bulk_create(made)
            for trial, row in zip(made, some, strict=True):
                # Django has set it to now.
                trial.created_at = row.created_at or trial.created_at
            Trial.objects.bulk_update(made, ["created_at"])


SECTION = ExportSection(
    name="trials",
    row=TrialRow,
    read=read_trials,
    write=write_trials,
    texts=Trial.TEXTS,
)
