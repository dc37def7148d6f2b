"""The database steps of a turn that calls tools: asked, begun, answered, left waiting.

Each is one short transaction, fenced by the lease of the turn. A step that is retried
because its first answer was lost finds what it did.
"""

from collections.abc import Container, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import NamedTuple

from django.conf import settings
from django.db import transaction
from django.db.models import Count, QuerySet
from django.db.models.functions import Now

from chatsite.database import lock_user
from chatsite.features.tools import consent, registry
from chatsite.features.tools.context import PendingResult
from chatsite.features.tools.models import ToolCall, digest_of
from chatsite.llm import providers
from chatsite.turns import lifecycle
from chatsite.turns.lifecycle import TurnClaim, TurnResult
from chatsite.turns.models import TURN_LEASE, Turn
from memory import transcript
from memory.compaction import lease
from memory.leases import LeaseStatus
from memory.models import ModelCall

from . import answers, call_context
from .answers import CallAnswer, NoRoomError
from .call_requests import CallRequest, read_extras

State = ToolCall.State

OVER_LIMIT = "No result: this turn may not call more tools. Answer with what you have."
TOO_MANY_LATE = (
    "No result: the user already waits for {count} results of tools, reminders among "
    "them, the most there can be. The user can cancel some of them, or wait."
)


class SettledCalls(NamedTuple):
    """The calls of a turn before its next request.

    `still_open`: the calls to run, or those that wait for consent; `answered`: those
    that were answered just now; `has_room`: whether the model can ask for more.
    `rounds`, `calls`: how many replies of the turn have asked for calls so far, and for
    how many.
    """

    still_open: list[ToolCall]
    answered: list[ToolCall]
    has_room: bool
    rounds: int
    calls: int


@transaction.atomic
def ask(
    claim: TurnClaim, result: TurnResult, asked: Sequence[CallRequest]
) -> tuple[TurnClaim, list[ToolCall]] | None:
    """Store a reply that asks for calls, and its calls; bill its request.

    Return the claim of the next request, whose frames begin again, and the calls; None
    if the turn was lost. With a message behind the turn, only as many calls are stored
    as there are numbers for; raises NoRoomError, and stores nothing, if there is none.
    """
    turn = lifecycle.lock_held(claim)
    if turn is None:
        return None
    following = replace(
        claim, attempt=claim.attempt + 1, call_id=None, tokens=0, view=None
    )
    request = ModelCall.objects.select_related("message").get(pk=claim.call_id)
    if request.message:
        calls = request.message.calls_asked.select_related("request", "result")
        return following, list(calls.order_by("place"))
    asked = asked[: answers.count_space(turn)]
    if not asked:
        raise NoRoomError
    message = transcript.append_reply(
        turn.conversation,
        seq=turn.reply_seq,
        text=result.text,
        reasoning=result.reasoning,
        tool_calls=[each.to_langchain() for each in asked],
        extras=read_extras(providers.find_host(claim.model), result.extras, asked),
    )
    answers.advance(turn)
    # As a new attempt, and as the first one since something came of it.
    TURN_LEASE.filter_held(claim).update(
        text="",
        call=None,
        attempt=following.attempt,
        text_attempt=following.attempt,
        attempts_before=claim.attempt,
    )
    lifecycle.bill(turn.conversation, claim, result, message=message)
    reported = lifecycle.calibrated(turn.conversation, claim, result)
    lease.mark_due(turn.conversation_id, **reported)
    calls = ToolCall.objects.bulk_create(
        ToolCall(
            conversation=turn.conversation,
            turn=turn,
            request=message,
            place=place,
            call_id=each.call_id,
            name=each.name,
            arguments=each.arguments,
            digest=digest_of(each.name, each.arguments),
            error=each.error,
        )
        for place, each in enumerate(asked)
    )
    return following, calls


@transaction.atomic
def keep_cut_off(
    claim: TurnClaim, result: TurnResult, asked: Sequence[CallRequest]
) -> tuple[TurnClaim, list[ToolCall]] | None:
    """Store a reply that was cut off, as ask() does, and answer its calls as not run.

    The last answer says how many more calls there were. Raises NoRoomError, and stores
    nothing, if there is no room.
    """
    stored = ask(claim, result, asked)
    turn = lifecycle.lock_held(claim)
    if stored is None or turn is None:
        return None
    following, calls = stored
    not_run = CallAnswer(State.CANCELLED, answers.CUT_OFF, "not_run")
    answered = [(call, not_run) for call in calls if call.state == State.ASKED]
    if answered and (more := len(result.calls) - len(calls)) > 0:
        words = f"{answers.CUT_OFF} {answers.NOT_KEPT.format(count=more)}"
        answered[-1] = (answered[-1][0], replace(not_run, content=words))
    stored_now = answers.store_all(turn, answered)
    known = {call.pk: call for call in stored_now}
    return following, [known.get(call.pk, call) for call in calls]


@transaction.atomic
def begin(claim: TurnClaim, pk: int) -> ToolCall | LeaseStatus:
    """Record that a call runs, before it does, and return it with its context.

    Without a consent that it needs, it waits instead. CANCELLED, LOST: it may not run.
    """
    hold = TURN_LEASE.renew_unless_cancelled(TURN_LEASE.filter_held(claim))
    if hold is not LeaseStatus.KEPT:
        return hold
    row = ToolCall.objects.filter(pk=pk, turn_id=claim.row_id)
    asked = row.filter(state=State.ASKED)
    tool = registry.available().get(row.values_list("name", flat=True).get())
    if tool and tool.needs_consent and not consent.holds(asked, tool):
        consent.ask(asked, tool)
    asked.update(state=State.RUNNING, owner=claim.owner, started_at=Now())
    return answers.read(pk, *call_context.RELATED)


@transaction.atomic
def finish(
    claim: TurnClaim, pk: int, answer: CallAnswer | PendingResult
) -> ToolCall | None:
    """Store the result of a call that this attempt runs. None: the turn was lost."""
    turn = lifecycle.lock_held(claim)
    if turn is None:
        return None
    TURN_LEASE.renew_row(TURN_LEASE.filter_held(claim))
    call = answers.read(pk)
    if call.state != State.RUNNING:
        return call
    if isinstance(answer, CallAnswer):
        return answers.store(call, turn, answer)
    if _has_too_many_late(turn):
        return _refuse_late(call, turn, answer)
    return answers.store_pending(call, turn, answer)


def _has_too_many_late(turn: Turn) -> bool:
    limit = settings.LATE_CALLS_PER_USER
    if limit <= 0:
        return False
    owner = turn.conversation.owner_id
    lock_user(owner)
    # Few of all calls have a next look, for which there is an index.
    late = ToolCall.objects.filter(state=State.LATE, next_look_at__isnull=False)
    return late.filter(conversation__owner=owner).count() >= limit


def _refuse_late(call: ToolCall, turn: Turn, pending: PendingResult) -> ToolCall:
    words = TOO_MANY_LATE.format(count=settings.LATE_CALLS_PER_USER)
    refused = CallAnswer(State.FAILED, words, "too_many_late")
    tool = registry.known().get(call.name)
    if tool is None or tool.cancel is None:
        return answers.store(call, turn, refused)
    # It has begun its work. A background job cancels it.
    most = Now() + timedelta(seconds=settings.TOOL_DEADLINE_SECONDS)
    told = {"handle": pending.handle, "deadline_at": most}
    return answers.store(call, turn, refused, tells_tool=True, **told)


@transaction.atomic
def settle(claim: TurnClaim, limit: int | None = None) -> SettledCalls | None:
    """Return the open calls before the next request, None if the turn was lost.

    A call whose process is gone is run again only if running it twice is the same as
    running it once. `limit`: how many calls of the turn, the first ones, may run.
    """
    turn = lifecycle.lock_held(claim)
    if turn is None:
        return None
    still_open, answered = [], []
    over_limit = set()
    used = _calls_of(claim).aggregate(Count("request", distinct=True), Count("pk"))
    rounds, count = used["request__count"], used["pk__count"]
    if limit is not None and count > limit:
        in_order = _calls_of(claim).order_by("pk").values_list("pk", flat=True)
        over_limit.update(in_order[limit:])
    for call in answers.open_calls(turn):
        if answer := _why_not(call, over_limit):
            answered.append((call, answer))
            continue
        if call.state == State.RUNNING:
            call.state = State.ASKED
            ToolCall.objects.filter(pk=call.pk).update(state=call.state, owner="")
        still_open.append(call)
    closed = answers.store_all(turn, answered)
    has_room = bool(still_open) or answers.count_space(turn) != 0
    return SettledCalls(still_open, closed, has_room, rounds, count)


def _why_not(call: ToolCall, over_limit: Container[int]) -> CallAnswer | None:
    """Return the answer of a call that can't be run (any more)."""
    tool = registry.known().get(call.name)
    if call.state == State.RUNNING and not (tool and tool.runs_again):
        return answers.broken_off(call.name)
    if call.pk in over_limit:
        return CallAnswer(State.FAILED, OVER_LIMIT, "tool_limit")
    return None


@transaction.atomic
def wait(claim: TurnClaim) -> LeaseStatus | None:
    """Let the turn wait for consent, and return KEPT; no process holds it until then.

    Return None if the consent has come meanwhile.
    """
    turn = lifecycle.lock_held(claim)
    if turn is None:
        return LeaseStatus.LOST
    if turn.cancel_requested_at:
        return LeaseStatus.CANCELLED
    if not turn.tool_calls.filter(state=State.WAITING).exists():
        return None
    TURN_LEASE.release_row(TURN_LEASE.filter_held(claim), state=Turn.State.WAITING)
    return LeaseStatus.KEPT


def _calls_of(claim: TurnClaim) -> QuerySet[ToolCall]:
    return ToolCall.objects.filter(turn=claim.row_id, request__superseded_at=None)
