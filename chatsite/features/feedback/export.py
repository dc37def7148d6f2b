"""Feedback in the files of an export: as JSON, read by an import, and as Markdown."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from django.db.models import F
from django.utils.translation import gettext as _
from pydantic import BaseModel, Field

from chatsite.plugins import Seq, Time
from memory import bundle
from memory.models import Conversation, Message

from .models import Feedback


class FeedbackRow(BaseModel):
    """The owner's opinion of reply `seq`, with an optional comment."""

    seq: Seq
    verdict: Literal[*Feedback.Verdict.values]
    comment: Annotated[str, Field(max_length=Feedback.MAX_CHARS)] = ""
    created_at: Time = None
    updated_at: Time = None


def read_feedback(conversation: Conversation) -> list[dict[str, Any]]:
    """Return the owner's feedback on replies, in their order."""
    columns = ("verdict", "comment", "created_at", "updated_at")
    rows = conversation.feedback.order_by("message__seq")
    return list(rows.values(*columns, seq=F("message__seq")))


def write_feedback(
    conversation: Conversation,
    messages: Mapping[int, Message],
    rows: Sequence[FeedbackRow],
    batch: bundle.Batch = bundle.at_once,
) -> None:
    """Store the first feedback on each reply; that on other messages is left out."""
    found: dict[int, FeedbackRow] = {}
    for row in rows:
        reply = messages.get(row.seq)
        if reply and reply.is_reply:
            found.setdefault(row.seq, row)
    for some in bundle.batches(found.values(), lambda row: len(row.comment)):
        made = [
            Feedback(
                conversation=conversation,
                message=messages[row.seq],
                **row.model_dump(include={"verdict", "comment"}),
            )
            for row in some
        ]
        with batch(0):
            bundle.create_dated(made, some)


def describe_feedback(
    conversation: Conversation, show: Callable[[str], str]
) -> dict[int, list[str]]:
    """Return the Markdown below each reply that has feedback."""
    found = {}
    for row in read_feedback(conversation):
        verdict = Feedback.Verdict(row["verdict"]).label
        blocks = [f"**{_('Feedback: %(verdict)s') % {'verdict': verdict}}**"]
        if row["comment"]:
            lines = show(row["comment"]).splitlines()
            blocks.append("\n".join(f"> {line}" for line in lines))
        found[row["seq"]] = blocks
    return found
