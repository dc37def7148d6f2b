"""A conversation's rows as plain values, to be written into another conversation.

A branch copies them, an import reads them. Numbers of messages and versions are kept,
so that references to them stay right. Rows are prepared before the transaction that
writes them: SQLite has one writer at a time.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from typing import Any, TypeVar

from django.db import connection
from django.db.models import F, Model, QuerySet

from . import prompts
from .engine.tokens import count_message
from .integrity import signatures
from .models import Conversation, Message, ModelCall, RecallEntry, Summary
from .search import recall
from .view import rebuilding

# Most rows and characters in one transaction; a larger row has its own.
BATCH, BATCH_CHARS = 100, 100_000
MESSAGE_FIELDS = (
    *("seq", "role", "text", "sent_text", "reasoning", "tool_calls", "tool_call_id"),
    *("extras", "late_for", "attachments", "client_id", "created_at"),
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
    *("purpose", "refs", "sha256", "model", "provider", "tokens_estimated"),
    *("parts", "body_sha256", "body_fields"),
    *("tokens_input", "tokens_cached", "tokens_output", "first_token_ms"),
    *("total_ms", "attempts", "error", "created_at"),
)

Values = dict[str, Any]
T = TypeVar("T")
# Opens the transaction of a batch, given its number of messages or requests.
Batch = Callable[[int], AbstractContextManager[None]]


def at_once(count: int) -> AbstractContextManager[None]:
    """Return an empty context, for callers inside one transaction."""
    return nullcontext()


@dataclass(frozen=True, slots=True)
class Bundle:
    """Values of rows by column.

    A summary also has `folded_from`, the versions it was made from; a call has the
    `seq` or `version` that it made.
    """

    messages: Sequence[Values] = ()
    summaries: Sequence[Values] = ()
    calls: Sequence[Values] = ()
    prompts: dict[str, str] = field(default_factory=dict)


def read_bundle(conversation: Conversation, last: int) -> Bundle:
    """Read the conversation up to message `last`, and the versions that end by then."""
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


def write_bundle(
    conversation: Conversation, bundle: Bundle, batch: Batch = at_once
) -> dict[int, Message]:
    """Write everything into an empty conversation; return its messages by number."""
    messages = _write_messages(conversation, bundle.messages, batch)
    summaries = _write_summaries(conversation, bundle.summaries, batch)
    for some in batches(bundle.calls):
        calls = []
        for values in some:
            own = dict(values)
            message = messages.get(own.pop("seq", None))
            summary = summaries.get(own.pop("version", None))
            own |= {"conversation": conversation, "message": message}
            if sum(n for _, n in own.get("parts", ())) != own["tokens_estimated"]:
                own["parts"] = []
            calls.append(ModelCall(summary=summary, **own))
        _bound_times(conversation, calls)
        with batch(0):
            _write_prompts(conversation, bundle.prompts, calls)
            _create_rows(ModelCall, calls)
    conversation.next_seq = max(messages, default=0) + 1
    with batch(0):
        conversation.save(update_fields=["next_seq"])
    return messages


def _write_messages(
    conversation: Conversation, values: Iterable[Values], batch: Batch
) -> dict[int, Message]:
    written: dict[int, Message] = {}
    for some in batches(values):
        rows = [Message(conversation=conversation, **each) for each in some]
        for row in rows:
            row.tokens = 0 if row.deleted_at else count_message(row.to_langchain())
        _bound_times(conversation, rows)
        entries = [RecallEntry(**recall.describe_entry(row)) for row in rows]
        with batch(len(rows)):
            _create_rows(Message, rows)
            for entry, row in zip(entries, rows, strict=True):
                entry.message = row
            RecallEntry.objects.bulk_create(entries)
        written |= {row.seq: row for row in rows}
    return written


def _write_summaries(
    conversation: Conversation, values: Iterable[Values], batch: Batch
) -> dict[int, Summary]:
    known: dict[int, Summary] = {}
    links = []
    for some in batches(values):
        rows = []
        for each in some:
            own = dict(each)
            sources = dict.fromkeys(own.pop("folded_from", []))
            links += [(own["version"], source) for source in sources]
            rows.append(Summary(conversation=conversation, **own))
        _bound_times(conversation, rows)
        with batch(0):
            _create_rows(Summary, rows)
        known |= {row.version: row for row in rows}
    link = Summary.folded_from.through
    made = (
        link(from_summary=known[version], to_summary=known[source])
        for version, source in links
        if source in known
    )
    while some := list(islice(made, BATCH)):
        with batch(0):
            link.objects.bulk_create(some)
    return known


def _write_prompts(
    conversation: Conversation, texts: dict[str, str], calls: Iterable[ModelCall]
) -> None:
    """Write the texts of these requests whose hash is right.

    Other conversations use the same rows.
    """
    names = [name for call in calls for name in prompts.named_in(call.refs)]
    found = {name: texts[name] for name in names if name in texts}
    right = {
        name: text for name, text in found.items() if prompts.hash_text(text) == name
    }
    prompts.keep_texts(conversation, right)


def create_dated(made: Sequence[Any], rows: Sequence[Any]) -> None:
    """Store new rows of one table with the times of `rows`, where they have any.

    Django alone would set the times to now.
    """
    for model in {type(each) for each in made}:
        model.objects.bulk_create(made)
        has_change = hasattr(model, "updated_at")
        for each, row in zip(made, rows, strict=True):
            each.created_at = row.created_at or each.created_at
            if has_change:
                each.updated_at = row.updated_at or each.created_at
        names = ["created_at", *(["updated_at"] if has_change else [])]
        model.objects.bulk_update(made, names)


def batches(
    values: Iterable[T],
    size: Callable[[T], int] = lambda row: sum(len(str(v)) for v in row.values()),
) -> Iterator[list[T]]:
    """Yield the values in lists for one transaction each.

    `size` returns the characters of a value.
    """
    some: list[T] = []
    total = 0
    for each in values:
        chars = size(each)
        if some and (len(some) == BATCH or total + chars > BATCH_CHARS):
            yield some
            some, total = [], 0
        some.append(each)
        total += chars
    if some:
        yield some


def _bound_times(conversation: Conversation, rows: Iterable[Any]) -> None:
    """Date the rows before their conversation, whatever a file says.

    By that the audit can tell copied rows from those that were written here.
    """
    newest = conversation.created_at - timedelta(microseconds=1)
    for row in rows:
        row.created_at = min(row.created_at or newest, newest)


def _create_rows(model: type[Model], rows: list[Any]) -> None:
    """Insert the rows with their own times, which Django would set to now."""
    times = [row.created_at for row in rows]
    QuerySet(model).bulk_create(rows)
    field = model._meta.get_field("created_at")
    timed = []
    for row, time in zip(rows, times, strict=True):
        row.created_at = time
        written = field.get_db_prep_save(time, connection)
        timed.append((written, *signatures.make_all(row), row.pk))
    signatures.update_rows(model, timed, [field, *signatures.fields_of(model)])


def drop_unproved(conversation: Conversation, batch: Batch = at_once) -> int:
    """Delete requests that differ from their hash or can't be rebuilt.

    Return how many. Their replies then count as external.
    """
    calls = conversation.model_calls.filter(purpose__in=ModelCall.COMPOSED)
    keys, dropped = list(calls.order_by("pk").values_list("pk", flat=True)), 0
    for start in range(0, len(keys), BATCH):
        some = calls.filter(pk__in=keys[start : start + BATCH])
        rows = list(some.select_related("conversation"))
        wrong = [call.pk for call in rows if not _has_true_context(call)]
        with batch(len(rows)):
            _drop_requests(conversation, ModelCall.objects.filter(pk__in=wrong))
        dropped += len(wrong)
    if dropped:
        with batch(0):
            kept = conversation.model_calls.order_by().values_list("refs", flat=True)
            needed = {
                name for refs in kept.iterator() for name in prompts.named_in(refs)
            }
            prompts.unlink_texts(
                conversation, set(prompts.list_hashes(conversation)) - needed
            )
    return dropped


def _drop_requests(conversation: Conversation, wrong: QuerySet[ModelCall]) -> None:
    replies = list(wrong.values_list("message", flat=True))
    if not replies:
        return
    QuerySet(ModelCall).filter(pk__in=list(wrong.values_list("pk", flat=True))).delete()
    explained = ModelCall.objects.filter(message__conversation=conversation)
    rows = conversation.messages.filter(pk__in=replies).exclude(
        pk__in=explained.values("message")
    )
    rows.update(imported_at=conversation.created_at)


def _has_true_context(call: ModelCall) -> bool:
    try:
        return rebuilding.verify_context(call) or rebuilding.is_erased(call)
    except Exception:  # noqa: BLE001 - a file can refer to anything, in any shape
        return False
