"""The requests of examples, rebuilt and proved by their hashes, and what is missing of
those that can't be: some at a time, each conversation read once.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Q

from memory import context
from memory.models import Message, ModelCall, Summary
from memory.ranges import Ranges, in_ranges, is_within, list_noted, to_ranges
from memory.view import rebuilding

from .models import Example

# Requests that are in memory at once, and whose references are.
REBUILT, CHECKED = 10, 50
# What an old import can bring, with references of any shape.
UNREADABLE = (LookupError, TypeError, ValueError, AttributeError)


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a request can't be rebuilt: it is not known, or texts of it were deleted; the
    numbers of the messages and the versions of the summaries."""

    messages: list[int] = field(default_factory=list)
    summaries: list[int] = field(default_factory=list)
    is_unknown: bool = False

    def __bool__(self) -> bool:
        return bool(self.messages or self.summaries or self.is_unknown)


@dataclass(frozen=True, slots=True)
class Proof:
    """An example with its request; None: it can't be rebuilt as it was sent."""

    example: Example
    call: ModelCall | None
    built: context.Built | None


def find_example_calls(examples: Sequence[Example]) -> dict[int, ModelCall]:
    """The requests that the replies came from, by the key of the reply."""
    rows = ModelCall.objects.filter(
        purpose=ModelCall.Purpose.REPLY,
        message__in=[each.message_id for each in examples],
    )
    # Of several the last.
    calls = {call.message_id: call for call in rows.order_by("id")}
    for each in examples:
        if call := calls.get(each.message_id):
            call.conversation = each.conversation
    return calls


def prove_examples(examples: Sequence[Example]) -> list[Proof]:
    """In their order; the examples have their conversations."""
    calls = find_example_calls(examples)
    by_conversation: dict[int, list[ModelCall]] = defaultdict(list)
    for call in calls.values():
        by_conversation[call.conversation_id].append(call)
    built: dict[int, context.Built] = {}
    for some in by_conversation.values():
        built |= _rebuild(some)
    found = []
    for each in examples:
        call = calls.get(each.message_id)
        sent = built.get(call.pk) if call else None
        is_proved = sent is not None and sent.sha256 == call.sha256
        found.append(Proof(each, call, sent if is_proved else None))
    return found


def _rebuild(calls: list[ModelCall]) -> dict[int, context.Built]:
    try:
        built = rebuilding.rebuild_contexts(calls)
        return {call.pk: one for call, one in zip(calls, built, strict=True)}
    except UNREADABLE:
        if len(calls) == 1:
            return {}
    # One of them is unreadable: the others are not.
    return {pk: one for call in calls for pk, one in _rebuild([call]).items()}


def find_missing_texts(examples: Sequence[Example]) -> dict[int, Missing]:
    """By the key of the example, of those whose request can't be rebuilt as far as
    references say; in three statements, and without a text."""
    calls = find_example_calls(examples)
    numbers: dict[int, Ranges] = {}
    versions: dict[int, set[int]] = {}
    for call in calls.values():
        try:
            numbers[call.pk], versions[call.pk] = _read_refs(call.refs)
        except UNREADABLE:
            continue
    readable = [call for call in calls.values() if call.pk in numbers]
    deleted, erased = _find_deleted(readable, numbers), _find_erased(readable, versions)
    found = {}
    for each in examples:
        call = calls.get(each.message_id)
        if call is None or call.pk not in numbers:
            found[each.pk] = Missing(is_unknown=True)
            continue
        of = call.conversation_id
        gone = [seq for seq in deleted[of] if is_within(seq, numbers[call.pk])]
        missing = Missing(gone, sorted(erased[of] & versions[call.pk]))
        if missing:
            found[each.pk] = missing
    return found


def _read_refs(refs: dict[str, Any]) -> tuple[Ranges, set[int]]:
    """The messages and the summaries that a request is made of."""
    single = [*list_noted(refs), *(rule[0] for rule in refs.get("rules", ()))]
    single += [refs["newest"]] if refs.get("newest") else []
    ranges = [*refs.get("pinned", ()), *refs["window"], *refs.get("steps", ())]
    return [*ranges, *to_ranges(set(single))], set(refs.get("summaries", ()))


def _find_deleted(
    calls: Iterable[ModelCall], numbers: dict[int, Ranges]
) -> dict[int, list[int]]:
    """Of each conversation the deleted messages that are in one of the requests."""
    wanted: dict[int, set[tuple[int, int]]] = defaultdict(set)
    for call in calls:
        wanted[call.conversation_id].update((a, b) for a, b in numbers[call.pk])
    found: dict[int, list[int]] = defaultdict(list)
    rows = Message.objects.filter(
        _any_of(Q(conversation=pk) & in_ranges(each) for pk, each in wanted.items()),
        deleted_at__isnull=False,
    )
    for pk, seq in rows.order_by("seq").values_list("conversation_id", "seq"):
        found[pk].append(seq)
    return found


def _find_erased(
    calls: Iterable[ModelCall], versions: dict[int, set[int]]
) -> dict[int, set[int]]:
    wanted: dict[int, set[int]] = defaultdict(set)
    for call in calls:
        wanted[call.conversation_id] |= versions[call.pk]
    found: dict[int, set[int]] = defaultdict(set)
    rows = Summary.objects.filter(
        _any_of(
            Q(conversation=pk, version__in=each) for pk, each in wanted.items() if each
        ),
        status=Summary.Status.ERASED,
    )
    for pk, version in rows.values_list("conversation_id", "version"):
        found[pk].add(version)
    return found


def _any_of(parts: Iterable[Q]) -> Q:
    conditions = [*parts]
    return Q(*conditions, _connector=Q.OR) if conditions else Q(pk__in=[])


def read_examples(keys: Sequence[int]) -> list[Example]:
    """Those of these keys that are still there, in their order, with their
    conversations and replies."""
    rows = Example.objects.filter(pk__in=keys, conversation__deleted_at=None)
    found = {row.pk: row for row in rows.select_related("conversation", "message")}
    return [found[key] for key in keys if key in found]


def split_keys(keys: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    return (keys[at : at + size] for at in range(0, len(keys), size))
