"""The numbers of a turn's messages, and the messages that answer its calls.

Everything here belongs into a transaction that has locked the conversation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import F, Max, QuerySet
from django.db.models.functions import Now

from chatsite.features.tools import registry, results
from chatsite.features.tools.context import PendingResult
from chatsite.features.tools.models import ToolCall
from chatsite.turns.models import Turn
from memory import transcript
from memory.models import Conversation, Message

from . import result_files
from .ending import end_calls

# Numbers that a message leaves free for the turn before it, which may need more than
# it has when it calls tools: for each of its calls and requests one. They can't be
# given back, since the message has its own; so there are as many as most turns need,
# and one that needs more has to answer with what it has.
TOOL_ROOM = 64

State = ToolCall.State

NOT_RUN = "No result: the turn ended before the tool was run."
CUT_OFF = "No result: the reply was cut off, so the tool was not run."
NOT_KEPT = "{count} more calls of the reply were not kept."
BROKEN_OFF = "No result: the turn ended before the tool had answered."
MAY_HAVE_RUN = (
    "No result: it is not known whether the tool ran, since the turn was broken off "
    "while it was running."
)


class NoRoomError(Exception):
    """The next message of the user leaves no number for what a turn has to store."""


@dataclass(frozen=True, slots=True)
class CallAnswer:
    """The end of a call: its state, and its result as results.refine() takes it."""

    state: str
    content: Any
    error: str = ""
    summary: results.ResultSummary | None = None


def find_room(conversation: Conversation) -> int:
    """Return how many numbers to leave free before the user's next message.

    That is 0 if no turn is open or no tool can be called.
    """
    if not conversation.tools:
        return 0
    transcript.lock_for_update(conversation)
    unfinished = conversation.turns.filter(state__one_of=Turn.UNFINISHED)
    return TOOL_ROOM if unfinished.exists() else 0


def count_space(turn: Turn) -> int | None:
    """Return how many calls the turn can ask for next, None for any number.

    They, their results and the reply need numbers before the user's next message.
    """
    following = _find_following(turn)
    if following is None:
        return None
    return max(0, following - _find_last(turn, following) - 2)


def advance(turn: Turn, count: int = 1) -> range:
    """Take the next `count` numbers; the last one is for the turn's reply.

    The number that the reply had so far is used. Messages behind the turn have left
    room; raises NoRoomError if it is used up.
    """
    following = _find_following(turn)
    if following is None:
        first = transcript.reserve_numbers(turn.conversation, count)
    else:
        first = _find_last(turn, following) + 1
        if first + count > following:
            raise NoRoomError
    taken = range(first, first + count)
    turn.reply_seq = taken[-1]
    Turn.objects.filter(pk=turn.pk).update(reply_seq=turn.reply_seq)
    return taken


def _find_following(turn: Turn) -> int | None:
    """Return the number of the message behind the turn."""
    behind = turn.conversation.turns.filter(pk__gt=turn.pk).order_by("pk")
    return behind.values_list("user_message__seq", flat=True).first()


def _find_last(turn: Turn, following: int) -> int:
    """Return the last number that is taken before that message.

    It is the reply's, or that of a late result of an earlier turn, which came between.
    """
    before = turn.conversation.messages.filter(seq__lt=following)
    last = before.aggregate(last=Max("seq"))["last"] or 0
    return max(last, turn.reply_seq)


def store(call: ToolCall, turn: Turn, answer: CallAnswer, **values: Any) -> ToolCall:
    """Answer a call in its place, which ends it, and return its row.

    `values` are those of end_calls(). `call.request` has to be read under the lock:
    deleting or hiding it while a tool runs applies to its result, too.
    """
    message = _append_in_place(call, turn, answer.content, answer.summary)
    row = ToolCall.objects.filter(pk=call.pk)
    end_calls(row, answer.state, answer.error, result=message, **values)
    return read(call.pk)


def store_pending(call: ToolCall, turn: Turn, pending: PendingResult) -> ToolCall:
    """Answer a call in its place whose result comes later: it does not end."""
    most = pending.deadline or settings.TOOL_DEADLINE_SECONDS
    # The look at the deadline is the one that ends the call.
    pause = min(pending.seconds, most)
    message = _append_in_place(call, turn, pending.text)
    ToolCall.objects.filter(pk=call.pk).update(
        state=State.LATE,
        result=message,
        handle=pending.handle,
        next_look_at=Now() + timedelta(seconds=pause),
        deadline_at=Now() + timedelta(seconds=most),
    )
    return read(call.pk)


def append_result(
    call: ToolCall,
    conversation: Conversation,
    seq: int,
    content: Any,
    summary: results.ResultSummary | None = None,
    **late: int,
) -> Message:
    """Store a result as message `seq`, with its files.

    `late_for`: the message that asked for it, if the result comes after the turn.
    """
    tool = registry.known().get(call.name)
    refined = results.refine(content, tool, seq, summary)
    message = transcript.append_result(
        conversation,
        seq=seq,
        call_id=call.call_id,
        text=refined.whole,
        sent_text=refined.sent,
        request=call.request,
        **late,
    )
    result_files.keep(message, content)
    return message


def _append_in_place(
    call: ToolCall,
    turn: Turn,
    content: Any,
    summary: results.ResultSummary | None = None,
) -> Message:
    message = append_result(call, turn.conversation, turn.reply_seq, content, summary)
    advance(turn)
    return message


def store_all(
    turn: Turn, answered: Sequence[tuple[ToolCall, CallAnswer]]
) -> list[ToolCall]:
    """Store answers in the site's own words, with a constant number of statements.

    Other users wait as long as this takes.
    """
    if not answered:
        return []
    places = [turn.reply_seq, *advance(turn, len(answered))]
    messages = [
        transcript.make_result(
            turn.conversation,
            seq=seq,
            call_id=call.call_id,
            text=str(answer.content),
            request=call.request,
        )
        for seq, (call, answer) in zip(places, answered, strict=False)
    ]
    transcript.store_results(messages)
    calls = [call for call, _ in answered]
    rows = ToolCall.objects.filter(pk__in=[call.pk for call in calls])
    for answer in {(answer.state, answer.error) for _, answer in answered}:
        same = [c.pk for c, a in answered if (a.state, a.error) == answer]
        state, error = answer
        end_calls(rows.filter(pk__in=same), state, error)
    finished_at = rows.values_list("finished_at", flat=True).first()
    for message, (call, answer) in zip(messages, answered, strict=True):
        call.state, call.error, call.result = answer.state, answer.error, message
        call.finished_at = finished_at
    # One column: Django takes long to write a statement of many cases.
    ToolCall.objects.bulk_update(calls, ["result"])
    return calls


def read(pk: int, *more: str) -> ToolCall:
    """Return a call with the rows that its event needs, and `more` related rows."""
    related = ("request", "result", "late_result", *more)
    return ToolCall.objects.select_related(*related).get(pk=pk)


def open_calls(turn: Turn) -> list[ToolCall]:
    """Return the unanswered calls of a turn, in their order."""
    rows = ToolCall.objects.filter(turn=turn, state__in=ToolCall.UNANSWERED)
    return list(rows.select_related("request").order_by("pk"))


def broken_off(name: str) -> CallAnswer:
    """Return the answer of a call that had begun.

    Only of a read-only tool it is certain that nothing has happened.
    """
    tool = registry.known().get(name)
    if tool and tool.read_only:
        return CallAnswer(State.CANCELLED, BROKEN_OFF)
    return CallAnswer(State.UNKNOWN, MAY_HAVE_RUN)


def close_calls(turn: Turn) -> list[ToolCall]:
    """Answer the open calls of a turn that ends.

    Every request needs a result for each call.
    """
    not_run = CallAnswer(State.CANCELLED, NOT_RUN)
    answered = [
        (call, broken_off(call.name) if call.state == State.RUNNING else not_run)
        for call in open_calls(turn)
    ]
    return store_all(turn, answered)


def give_up_late(conversation: Conversation) -> list[ToolCall]:
    """Cancel late results of superseded calls, and return these calls.

    A background job notifies their tools.
    """
    late = ToolCall.objects.filter(conversation=conversation, state=State.LATE)
    keys = list(late.exclude(request__superseded_at=None).values_list("pk", flat=True))
    ended = late.filter(pk__in=keys)
    end_calls(ended, State.CANCELLED, "replaced", tells_tool=True)
    return [read(pk) for pk in keys]


def resume(turns: QuerySet[Turn]) -> int:
    """Queue turns that waited for consent; waiting was no attempt."""
    waiting = turns.filter(state=Turn.State.WAITING)
    return waiting.update(state=Turn.State.QUEUED, attempts_before=F("attempt"))
