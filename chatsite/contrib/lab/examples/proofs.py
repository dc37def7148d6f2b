"""Requests of examples, rebuilt and proved by their hashes.

Also finds the deleted texts of requests that cannot be rebuilt. Works in
batches, and reads each conversation once per batch.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import QuerySet

from memory import context
from memory.models import Message, ModelCall, Summary
from memory.ranges import Ranges, is_within, list_noted, to_ranges
from memory.view.rebuilding import is_sent

from ..stored_requests import UNREADABLE, find_reply_calls, rebuild_readable
from .models import Example

# Requests in memory at once, and requests whose references are in memory at once.
REBUILT, CHECKED = 10, 50


@dataclass(frozen=True, slots=True)
class MissingTexts:
    """The reason why a request cannot be rebuilt.

    Either it is unknown, or texts of it were deleted: the numbers of the messages
    and the versions of the summaries.
    """

    messages: list[int] = field(default_factory=list)
    summaries: list[int] = field(default_factory=list)
    is_unknown: bool = False

    def __bool__(self) -> bool:
        return bool(self.messages or self.summaries or self.is_unknown)


@dataclass(frozen=True, slots=True)
class Proof:
    """An example with its request; `built` is None if that cannot be proved."""

    example: Example
    call: ModelCall | None
    built: context.RequestContext | None


def find_example_calls(examples: Sequence[Example]) -> dict[int, ModelCall]:
    """Return the requests that the replies came from, by the key of the reply."""
    keys = [each.message_id for each in examples]
    calls = find_reply_calls(Message.objects.filter(pk__in=keys))
    found = {call.message_id: call for call in calls}
    for each in examples:
        if call := found.get(each.message_id):
            call.conversation = each.conversation
    return found


def prove_examples(examples: Sequence[Example]) -> list[Proof]:
    """Rebuild the requests of the examples, in their order.

    The conversations of the examples must be loaded.
    """
    calls = find_example_calls(examples)
    by_conversation: dict[int, list[ModelCall]] = defaultdict(list)
    for call in calls.values():
        by_conversation[call.conversation_id].append(call)
    built: dict[int, context.RequestContext] = {}
    for some in by_conversation.values():
        built |= rebuild_readable(some)
    found = []
    for each in examples:
        call = calls.get(each.message_id)
        sent = built.get(call.pk) if call else None
        is_proved = sent is not None and is_sent(call, sent)
        found.append(Proof(each, call, sent if is_proved else None))
    return found


def find_missing_texts(examples: Sequence[Example]) -> dict[int, MissingTexts]:
    """Return the missing texts by the key of the example, where there are any.

    Takes three queries that read references but no texts, so a request can still
    fail to be proved.
    """
    calls = find_example_calls(examples)
    of = {"conversation__in": {call.conversation_id for call in calls.values()}}
    deleted = _group(Message.objects.filter(**of).exclude(deleted_at=None), "seq")
    erased = Summary.objects.filter(**of, status=Summary.Status.ERASED)
    gone = _group(erased, "version")
    found = {}
    for each in examples:
        try:
            call = calls[each.message_id]
            numbers, versions = _read_refs(call.refs)
            seqs = [n for n in deleted[call.conversation_id] if is_within(n, numbers)]
            of_versions = [v for v in gone[call.conversation_id] if v in versions]
            missing = MissingTexts(seqs, of_versions)
        except UNREADABLE:
            missing = MissingTexts(is_unknown=True)
        if missing:
            found[each.pk] = missing
    return found


def _group(rows: QuerySet[Any], column: str) -> dict[int, list[int]]:
    """Return the numbers of the rows by their conversation, in order."""
    found: dict[int, list[int]] = defaultdict(list)
    for pk, number in rows.order_by(column).values_list("conversation_id", column):
        found[pk].append(number)
    return found


def _read_refs(refs: dict[str, Any]) -> tuple[Ranges, set[int]]:
    """Return the messages and the versions of summaries that a request consists of."""
    single = [*list_noted(refs), *(rule[0] for rule in refs.get("rules", ()))]
    single += [refs["newest"]] if refs.get("newest") else []
    ranges = [*refs.get("pinned", ()), *refs["window"], *refs.get("steps", ())]
    return [*ranges, *to_ranges(set(single))], set(refs.get("summaries", ()))


def read_examples(keys: Sequence[int]) -> list[Example]:
    """Return the examples of these keys that still exist, in the order of the keys.

    Their conversations and replies are loaded.
    """
    rows = Example.objects.filter(pk__in=keys, conversation__deleted_at=None)
    found = {row.pk: row for row in rows.select_related("conversation", "message")}
    return [found[key] for key in keys if key in found]


def split_keys(keys: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    return (keys[at : at + size] for at in range(0, len(keys), size))
