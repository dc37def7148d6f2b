"""The requests of two replies as read from the tables.

Includes the state of the messages in them.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, Subquery
from langchain_core.messages import BaseMessage

from chatsite.turns.requests import has_request
from memory import context
from memory.engine.compose import Shape
from memory.models import Conversation, Message, ModelCall, Summary
from memory.models.change import Change
from memory.ranges import in_ranges, list_noted, to_ranges
from memory.view import rebuilding

from ..stored_requests import find_reply_calls
from .comparison import Block

MOST_CHANGES = 1_000
# The number of a quoted message. Quoted text cannot contain this form: it is escaped.
NUMBER = re.compile(r'<message n="(\d{1,10})"')
Action = Change.Action
LOGGED = (Action.LEAVE_OUT, Action.BRING_BACK, Action.DELETE, Action.EDIT)


class UnknownReplyError(LookupError):
    """Raised if the number is not that of a reply with a known request."""

    def __init__(self, seq: int | None) -> None:
        super().__init__(seq)
        self.seq = seq


@dataclass(frozen=True, slots=True)
class SentRequest:
    """The rebuilt request that was sent for reply `seq`."""

    seq: int
    call: ModelCall
    built: context.RequestContext
    blocks: list[Block]

    @property
    def refs(self) -> dict[str, Any]:
        return self.built.refs

    @property
    def pinned(self) -> set[int]:
        """The numbers of the messages that it quotes as pinned."""
        quoted = self.built.context.get_section("pinned")
        return set(map(int, NUMBER.findall(quoted[0].text))) if quoted else set()

    @property
    def numbers(self) -> set[int]:
        """The numbers of its pinned messages and of those sent by themselves."""
        return self.pinned.union(*(block.seqs for block in self.blocks))

    @property
    def is_proved(self) -> bool:
        return rebuilding.is_sent(self.call, self.built)


@dataclass(frozen=True, slots=True)
class RequestComparison:
    """The request of reply `b.seq`, and the one to compare it with.

    `a` is None if no request came before.
    """

    a: SentRequest | None
    b: SentRequest
    # The time at which the request before it was answered.
    before: datetime | None
    states: dict[int, Message] = field(default_factory=dict)
    # The user's changes to messages between the two: action and number of the message.
    changes: list[tuple[str, int]] = field(default_factory=list)

    @property
    def requests(self) -> list[SentRequest]:
        return [each for each in (self.a, self.b) if each]

    @property
    def missing(self) -> list[int]:
        """The messages of either request whose text was deleted since."""
        return [n for n, state in sorted(self.states.items()) if state.deleted_at]

    @property
    def erased_versions(self) -> list[int]:
        rows = [row for each in self.requests for row in each.built.summaries]
        erased = Summary.Status.ERASED
        return sorted({row.version for row in rows if row.status == erased})


def find_newest_reply(conversation: Conversation) -> int | None:
    """Return the number of the newest reply with a known request, or None."""
    rows = conversation.messages.filter(has_request(), role=Message.Role.ASSISTANT)
    return rows.order_by("-seq").values_list("seq", flat=True).first()


def read_compared(
    conversation: Conversation,
    seq: int,
    other: int | None = None,
    known: Mapping[int, ModelCall] | None = None,
) -> RequestComparison:
    """Compare the request of reply `seq` with that of `other`, or of the reply before.

    `known` selects the request of replies that have several. Raises
    UnknownReplyError.
    """
    calls = _find_compared_calls(conversation, seq, other) | dict(known or {})
    for each in filter(None, (seq, other)):
        if each not in calls:
            raise UnknownReplyError(each)
    previous = max((each for each in calls if each < seq), default=None)
    other = previous if other is None else other
    wanted = [*dict.fromkeys(filter(None, (other, seq)))]
    built = rebuilding.rebuild_contexts([calls[each] for each in wanted])
    sent = {
        each: SentRequest(each, calls[each], one, make_blocks(one))
        for each, one in zip(wanted, built, strict=True)
    }
    a, b = sent.get(other or 0), sent[seq]
    answered = None
    if before := calls.get(previous):
        answered = before.created_at + timedelta(milliseconds=before.total_ms)
    numbers = {n for one in sent.values() for n in one.numbers | list_noted(one.refs)}
    return RequestComparison(
        a,
        b,
        answered,
        read_states(conversation, numbers),
        _read_changes(conversation, a, b) if a else [],
    )


def _find_compared_calls(
    conversation: Conversation, seq: int, other: int | None
) -> dict[int, ModelCall]:
    """Fetch the requests of these replies and of the one before `seq`, in one query."""
    replies = conversation.messages.filter(role=Message.Role.ASSISTANT)
    earlier = replies.filter(has_request(), seq__lt=seq).order_by("-seq")
    wanted = Q(seq=seq) | Q(seq=Subquery(earlier.values("seq")[:1]))
    if other is not None:
        wanted |= Q(seq=other)
    found = find_reply_calls(replies.filter(wanted))
    for call in found:
        call.conversation = conversation
    return {call.seq: call for call in found}


def read_states(
    conversation: Conversation, numbers: Iterable[int]
) -> dict[int, Message]:
    """Return the messages that were changed or have files, by number, without texts.

    Changed are those that were superseded, excluded or deleted.
    """
    told = Q(superseded_at__isnull=False) | Q(excluded_at__isnull=False)
    told |= Q(deleted_at__isnull=False) | ~Q(attachments=[])
    rows = conversation.messages.filter(in_ranges(to_ranges(numbers)), told)
    names = ("conversation", "seq", "superseded_at", "deleted_at", "attachments")
    return {row.seq: row for row in rows.only(*names)}


def _read_changes(
    conversation: Conversation, a: SentRequest, b: SentRequest
) -> list[tuple[str, int]]:
    first, last = sorted((a.call.created_at, b.call.created_at))
    rows = conversation.changes.filter(
        created_at__gt=first, created_at__lte=last, action__in=LOGGED
    )
    found = rows.exclude(seq=None).order_by("-created_at")
    return list(found.values_list("action", "seq")[:MOST_CHANGES])


def make_blocks(built: context.RequestContext) -> list[Block]:
    """Split a request into blocks whose keys identify their content."""
    named = [
        (section.kind, message)
        for section in built.context.sections
        for message in section.messages
    ]
    groups = Shape.from_refs(built.refs).group_messages(
        [message for _, message in named]
    )
    if len(groups) != len(built.wire):
        return _name_by_words(built.wire)
    parts = iter(named)
    return [
        _make_block(wire, [next(parts) for _ in group])
        for wire, group in zip(built.wire, groups, strict=True)
    ]


def _name_by_words(wires: Sequence[dict[str, Any]]) -> list[Block]:
    """Identify the messages of a request that was not composed here by their texts.

    The sources of its messages are unknown, so messages with equal texts are
    treated as the same, one after the other.
    """
    seen: Counter[str] = Counter()
    blocks = []
    for wire in wires:
        words = json.dumps(wire, ensure_ascii=False, sort_keys=True)
        seen[words] += 1
        blocks.append(Block(((words, seen[words]),), wire, "window"))
    return blocks


def _make_block(wire: dict[str, Any], parts: list[tuple[str, BaseMessage]]) -> Block:
    keys = tuple(_name_part(*part) for part in parts)
    seqs = tuple(int(message.id) for _, message in parts if message.id)
    return Block(keys, wire, parts[0][0], seqs)


def _name_part(kind: str, message: BaseMessage) -> tuple[str, Any]:
    if message.id:
        return ("message", int(message.id))
    # The placeholder of a result that never came.
    if call := getattr(message, "tool_call_id", ""):
        return ("call", call)
    return ("part", kind)
