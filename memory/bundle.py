"""A conversation's rows as plain values, to be written into another conversation:
what a branch copies and what an import reads.

Numbers of messages and versions are kept, so that references to them stay true.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import F, Model, QuerySet

from . import context, prompts, recall, seals
from .engine.tokens import count_message
from .messages import to_langchain
from .models import Conversation, Message, ModelCall, RecallEntry, Summary

BATCH = 500
MESSAGE_FIELDS = (
    *("seq", "role", "text", "tool_calls", "tool_call_id", "client_id", "created_at"),
    *("pinned_at", "excluded_at", "superseded_at", "deleted_at", "imported_at"),
)
SUMMARY_FIELDS = (
    *("version", "level", "generation", "first_seq", "last_seq", "text", "structured"),
    *("flags", "trigger", "preset", "policy_hash", "prompt_hash", "model"),
    "tokens_in",
    *("tokens_out", "tokens_before", "tokens_after", "ms", "status", "error"),
    *("author_id", "created_at"),
)
CALL_FIELDS = (
    *("purpose", "refs", "sha256", "model", "tokens_estimated", "tokens_input"),
    *("tokens_cached", "tokens_output", "first_token_ms", "total_ms", "attempts"),
    *("error", "created_at"),
)

Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Bundle:
    """Values of rows by the names of their columns. Beside those, a summary has the
    versions it was `folded_from`, and a call the `seq` and `version` that it made."""

    messages: Sequence[Values] = ()
    summaries: Sequence[Values] = ()
    calls: Sequence[Values] = ()
    prompts: dict[str, str] = field(default_factory=dict)


def read(conversation: Conversation, last: int) -> Bundle:
    """The conversation up to message `last`, and the versions that end by then."""
    messages = conversation.messages.filter(seq__lte=last).order_by("seq")
    summaries = conversation.summaries.filter(last_seq__lte=last).order_by("version")
    sources: dict[int, list[int]] = {}
    links = Summary.folded_from.through.objects.filter(from_summary__in=summaries)
    for made, source in links.values_list(
        "from_summary__version", "to_summary__version"
    ):
        sources.setdefault(made, []).append(source)
    calls = conversation.model_calls.exclude(purpose=ModelCall.Purpose.TITLE)
    made_here = calls.filter(message__in=messages) | calls.filter(summary__in=summaries)
    return Bundle(
        messages=list(messages.values(*MESSAGE_FIELDS)),
        summaries=[
            {**row, "folded_from": sources.get(row["version"], [])}
            for row in summaries.values(*SUMMARY_FIELDS)
        ],
        calls=list(
            made_here.order_by("id").values(
                *CALL_FIELDS, seq=F("message__seq"), version=F("summary__version")
            )
        ),
        prompts=dict(conversation.prompts.values_list("sha256", "text")),
    )


def write(conversation: Conversation, bundle: Bundle) -> dict[int, Message]:
    """Write everything into an empty conversation; its messages by number.

    Call it inside a transaction.
    """
    messages = _write_messages(conversation, bundle.messages)
    summaries = _write_summaries(conversation, bundle.summaries)
    _write_prompts(conversation, bundle.prompts)
    _write_calls(conversation, bundle.calls, messages, summaries)
    conversation.next_seq = max(messages, default=0) + 1
    conversation.save(update_fields=["next_seq"])
    return messages


def _write_messages(
    conversation: Conversation, values: Iterable[Values]
) -> dict[int, Message]:
    rows = [Message(conversation=conversation, **each) for each in values]
    for row in rows:
        row.tokens = 0 if row.deleted_at else count_message(to_langchain(row))
    _create(Message, rows)
    entries = [RecallEntry(**recall.describe(row)) for row in rows]
    RecallEntry.objects.bulk_create(entries, batch_size=BATCH)
    return {row.seq: row for row in rows}


def _write_summaries(
    conversation: Conversation, values: Iterable[Values]
) -> dict[int, Summary]:
    rows, sources = [], {}
    for each in values:
        own = dict(each)
        sources[own["version"]] = own.pop("folded_from", [])
        rows.append(Summary(conversation=conversation, **own))
    _create(Summary, rows)
    known = {row.version: row for row in rows}
    link = Summary.folded_from.through
    link.objects.bulk_create(
        link(from_summary=known[made], to_summary=known[source])
        for made, found in sources.items()
        for source in dict.fromkeys(found)
        if source in known
    )
    return known


def _write_prompts(conversation: Conversation, texts: dict[str, str]) -> None:
    """Only what is what its name says: other conversations rely on the same rows."""
    true = {name: text for name, text in texts.items() if prompts.name_of(text) == name}
    prompts.keep(conversation, true)


def _write_calls(
    conversation: Conversation,
    values: Iterable[Values],
    messages: dict[int, Message],
    summaries: dict[int, Summary],
) -> None:
    rows = []
    for each in values:
        own = dict(each)
        message = messages.get(own.pop("seq", None))
        summary = summaries.get(own.pop("version", None))
        rows.append(
            ModelCall(
                conversation=conversation, message=message, summary=summary, **own
            )
        )
    _create(ModelCall, rows)


def _create(model: type[Model], rows: list[Any]) -> None:
    """Insert the rows with the times they carry, which Django would set to now."""
    times: list[datetime | None] = [row.created_at for row in rows]
    QuerySet(model).bulk_create(rows, batch_size=BATCH)
    field = model._meta.get_field("created_at")
    timed = []
    for row, time in zip(rows, times, strict=True):
        if time:
            row.created_at = time
            written = field.get_db_prep_save(time, connection)
            timed.append((written, *seals.make_all(row), row.pk))
    seals.write(model, timed, [field, *seals.fields_of(model)])


def drop_unproved(conversation: Conversation) -> int:
    """Take away requests that are not what their hash says, or can not be rebuilt; how
    many they were. Their replies then count as written elsewhere."""
    calls = conversation.model_calls.filter(purpose=ModelCall.Purpose.REPLY)
    wrong = [call for call in calls.select_related("conversation") if not _holds(call)]
    replies = Message.objects.filter(model_calls__in=wrong).distinct()
    seqs = list(replies.values_list("seq", flat=True))
    QuerySet(ModelCall).filter(pk__in=[call.pk for call in wrong]).delete()
    explained = ModelCall.objects.filter(message__conversation=conversation)
    rows = conversation.messages.filter(seq__in=seqs).exclude(
        pk__in=explained.values("message")
    )
    rows.update(imported_at=conversation.created_at)
    return len(wrong)


def _holds(call: ModelCall) -> bool:
    try:
        return context.verify(call) or context.is_erased(call)
    except (LookupError, TypeError, ValueError):
        return False
