"""What a runner does with a turn: claim, begin, checkpoint, finish, release.

A running turn belongs to whoever holds its owner token and keeps its lease alive by
the clock of the database. Every write here names that token, so a process that lost
its turn writes nothing.
"""

import uuid
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum
from time import monotonic

from django.conf import settings
from django.db import models, transaction
from django.db.models import DateTimeField, Exists, ExpressionWrapper, F, OuterRef, Q
from django.db.models.functions import Coalesce, Now

from memory import calibration, context
from memory.models import Conversation, ModelCall

from .. import limits
from ..models import Turn
from .asking import unfinished
from .ending import end

State = Turn.State
# The first part of every owner token of this process.
PROCESS = uuid.uuid4().hex[:12]


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to run one attempt of a turn, as long as its lease is renewed."""

    turn_id: int
    conversation_id: int
    owner: str
    attempt: int
    call_id: int | None = None  # of the request that was recorded for this attempt
    renewed_at: float = 0.0  # time.monotonic() before the lease was last renewed

    @property
    def lease_end(self) -> float:
        """By the clock of this machine, and never later than by the database's."""
        return self.renewed_at + settings.TURN_LEASE_SECONDS


class Hold(Enum):
    """What a checkpoint found: still ours, asked to stop, or somebody else's now."""

    KEPT = "kept"
    CANCELLED = "cancelled"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Result:
    """How an attempt ended, with what the provider reported about it."""

    state: str
    text: str
    reasoning: str = ""
    error: str = ""
    tokens_input: int | None = None
    tokens_cached: int | None = None
    tokens_output: int | None = None
    first_token_ms: int | None = None
    total_ms: int = 0
    attempts: int = 1


def _lease() -> ExpressionWrapper:
    return ExpressionWrapper(
        Now() + timedelta(seconds=settings.TURN_LEASE_SECONDS),
        output_field=DateTimeField(),
    )


def _expired() -> Q:
    return Q(state=State.RUNNING, lease_until__lt=Now())


def _free() -> Q:
    return Q(state=State.QUEUED) | _expired()


def _orphans() -> models.QuerySet[Turn]:
    """Turns without a runner that nobody may run again: asked to stop, or given up."""
    most = F("attempts_before") + settings.TURN_MAX_ATTEMPTS
    used_up = Q(state=State.RUNNING, attempt__gte=most)
    return Turn.objects.filter(_free(), Q(cancel_requested_at__isnull=False) | used_up)


def end_orphans(conversation_id: int) -> list[Turn]:
    """End what a dead process left and nobody may go on with; the turns that ended."""
    if not _orphans().filter(conversation_id=conversation_id).exists():
        return []
    with transaction.atomic():
        _lock(conversation_id)
        found = unfinished(conversation_id).select_related("conversation")
        ended = [turn.pk for turn in found if _end_orphan(turn)]
    return list(Turn.objects.select_related("reply").filter(pk__in=ended))


def _end_orphan(turn: Turn) -> bool:
    stopped = turn.cancel_requested_at is not None
    state = State.STOPPED if stopped else State.INTERRUPTED
    error = turn.error if stopped else "interrupted"
    return end(_orphans().filter(pk=turn.pk), turn, state, error=error)


@transaction.atomic
def claim(conversation_id: int) -> Claim | None:
    """Take the conversation's next turn: queued, or running with an expired lease.

    None: nothing waits, somebody else has it, it is one for end_orphans(), or its
    owner has as many turns running as may be.
    """
    _lock(conversation_id)
    turn = unfinished(conversation_id).select_related("conversation").first()
    return _take(turn) if turn and limits.may_run(turn) else None


def _lock(conversation_id: int) -> None:
    Conversation.objects.select_for_update().filter(pk=conversation_id).first()


def _take(turn: Turn) -> Claim | None:
    # Known to be this process's even if it never hears that it got the turn.
    owner = PROCESS + uuid.uuid4().hex[: 36 - len(PROCESS)]
    started = monotonic()
    may_run = Turn.objects.filter(_free(), pk=turn.pk)
    taken = may_run.exclude(pk__in=_orphans()).update(
        state=State.RUNNING,
        owner=owner,
        attempt=F("attempt") + 1,
        lease_until=_lease(),
        started_at=Coalesce("started_at", Now()),
    )
    if not taken:
        return None
    return Claim(
        turn.pk, turn.conversation_id, owner, turn.attempt + 1, renewed_at=started
    )


@transaction.atomic
def begin(claim: Claim, built: context.Built, model: str) -> Claim | None:
    """Record the request that is about to be sent. None: the turn was lost."""
    started = monotonic()
    turn = _held(claim).select_related("conversation").first()
    if turn is None:
        return None
    context.keep_prompts(turn.conversation)
    call = ModelCall.objects.create(
        conversation=turn.conversation,
        purpose=ModelCall.Purpose.REPLY,
        refs=built.refs,
        sha256=built.sha256,
        model=model,
        tokens_estimated=built.tokens,
    )
    _held(claim).update(model=model, lease_until=_lease())
    # What an earlier attempt has saved stays with the request that it came from.
    _held(claim).filter(text="").update(call=call)
    return replace(claim, call_id=call.pk, renewed_at=started)


def _held(claim: Claim) -> models.QuerySet[Turn]:
    return Turn.objects.filter(pk=claim.turn_id, owner=claim.owner, state=State.RUNNING)


def checkpoint(claim: Claim, text: str) -> Hold:
    """Save the reply so far and renew the lease, in one fenced statement."""
    going = _held(claim).filter(cancel_requested_at=None)
    values = {"text": text, "text_attempt": claim.attempt, "call": claim.call_id}
    if going.update(lease_until=_lease(), **(values if text else {})):
        return Hold.KEPT
    return Hold.CANCELLED if _held(claim).exists() else Hold.LOST


@transaction.atomic
def finish(claim: Claim, result: Result) -> Turn | None:
    """End the attempt: state, reply, bill and calibration together. None: lost.

    A second call, after an answer that got lost, finds what the first one did.
    """
    # In the order of stop(): each waiting for what the other holds would be a deadlock.
    _lock(claim.conversation_id)
    turn = _held(claim).select_related("conversation").first()
    if turn is None:
        return _ended(claim)
    # An attempt that died before its first word leaves what an earlier one had saved.
    reasoning = ""
    if result.text:
        turn.text, turn.call_id = result.text, claim.call_id
        reasoning = result.reasoning
    # Why it was to be stopped was written into its row.
    why = turn.error if result.state == State.STOPPED else ""
    error = result.error or why
    if not end(_held(claim), turn, result.state, error=error, reasoning=reasoning):
        return None
    if call := ModelCall.objects.filter(pk=claim.call_id).first():
        _bill(call, result)
        _calibrate(turn.conversation, call, result)
    return _ended(claim)


def _ended(claim: Claim) -> Turn | None:
    rows = Turn.objects.filter(pk=claim.turn_id, owner=claim.owner)
    return rows.exclude(state__in=Turn.UNFINISHED).select_related("reply").first()


@transaction.atomic
def give_up(claim: Claim, result: Result) -> None:
    """Close the books of a request that failed and is followed by another one."""
    if call := ModelCall.objects.filter(pk=claim.call_id).first():
        _bill(call, result)


def _bill(call: ModelCall, result: Result) -> None:
    bill = {
        "tokens_input": result.tokens_input,
        "tokens_cached": result.tokens_cached,
        "tokens_output": result.tokens_output,
        "first_token_ms": result.first_token_ms,
        "total_ms": result.total_ms,
        "attempts": result.attempts,
        "error": result.error,
    }
    # One with an error was billed already, by a call whose answer was lost.
    if not ModelCall.objects.filter(pk=call.pk, error="").update(**bill):
        return
    call.tokens_input, call.tokens_output = result.tokens_input, result.tokens_output
    call.error = result.error
    limits.charge(call, result.reasoning + result.text)


def _calibrate(conversation: Conversation, call: ModelCall, result: Result) -> None:
    """Let the conversation's estimate follow what was reported."""
    if not result.tokens_input or not call.tokens_estimated:
        return
    values = calibration.follow(
        conversation, call.tokens_estimated, result.tokens_input
    )
    if values:
        Conversation.objects.filter(pk=conversation.pk).update(**values)


def release() -> int:
    """Hand every turn of this process back before it ends; how many they were.

    This counts as an attempt no more than it must: a queued turn is taken by the next
    sweep, whatever its attempt.
    """
    mine = Turn.objects.filter(state=State.RUNNING, owner__startswith=PROCESS)
    return mine.update(state=State.QUEUED, owner="", lease_until=None)


def due() -> list[int]:
    """Conversations that have a turn nobody works on."""
    alive = Turn.objects.filter(
        conversation=OuterRef("conversation"),
        state=State.RUNNING,
        lease_until__gte=Now(),
    )
    waiting = Turn.objects.filter(~Exists(alive), state__in=Turn.UNFINISHED)
    waiting = limits.with_room(waiting).order_by("conversation_id")
    ids = waiting.values_list("conversation_id", flat=True)
    return list(ids.distinct())
