"""The state machine of a turn: submit, stop, retry, edit, claim, begin, checkpoint,
finish, sweep. Each is one short transaction; none of them waits for a model.

A running turn belongs to whoever holds its owner token and keeps its lease alive by
the clock of the database. Every write of a runner names that token, so a process
that lost its turn writes nothing.
"""

import uuid
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum

from django.conf import settings
from django.db import models, transaction
from django.db.models import DateTimeField, Exists, ExpressionWrapper, F, OuterRef, Q
from django.db.models.functions import Coalesce, Now

from memory import context, folding, transcript
from memory.models import Conversation, Message, ModelCall

from .errors import CommandError
from .models import Turn

State = Turn.State
# Weight of the newest reply in the running mean of reported / estimated tokens.
CALIBRATION = 0.3


@dataclass(frozen=True, slots=True)
class Submitted:
    turn: Turn
    message: Message
    position: int  # unfinished turns before this one
    created: bool  # False: this client_id was seen before
    title: str = ""  # set when this message gave the conversation its title


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to run one attempt of a turn, as long as its lease is renewed."""

    turn_id: int
    conversation_id: int
    owner: str
    attempt: int
    call_id: int | None = None  # of the request that was recorded for this attempt


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
    error: str = ""
    tokens_input: int | None = None
    tokens_cached: int | None = None
    tokens_output: int | None = None
    first_token_ms: int | None = None
    total_ms: int = 0
    attempts: int = 1


@transaction.atomic
def submit(conversation: Conversation, *, text: object, client_id: object) -> Submitted:
    """Store a message and queue its turn; running turns never make it wait or fail.

    Raises transcript.TextError when the text or the id can not be stored.
    """
    message, created = transcript.append_user_message(
        conversation, text=text, client_id=client_id
    )
    if not created:
        turn = message.turns.get()
        return Submitted(turn, message, position(turn), created=False)
    turn = Turn.objects.create(
        conversation=conversation, user_message=message, reply_seq=message.seq + 1
    )
    title = transcript.suggest_title(conversation, message.text)
    return Submitted(turn, message, position(turn), created=True, title=title)


def position(turn: Turn) -> int:
    if turn.is_finished:
        return 0
    return unfinished(turn.conversation_id).filter(pk__lt=turn.pk).count()


def unfinished(conversation_id: int) -> models.QuerySet[Turn]:
    rows = Turn.objects.filter(
        conversation_id=conversation_id, state__in=Turn.UNFINISHED
    )
    return rows.order_by("pk")


def open_from(conversation: Conversation) -> int | None:
    """The number of the first message whose turn is not finished."""
    seqs = unfinished(conversation.pk).values_list("user_message__seq", flat=True)
    return seqs.first()


def get(conversation: Conversation, turn_id: int) -> Turn:
    turn = conversation.turns.filter(pk=turn_id).first()
    if turn is None:
        raise CommandError("not_found", "There is no such turn in this conversation.")
    return turn


@transaction.atomic
def stop(conversation: Conversation, turn_id: int) -> Turn:
    """End a queued turn at once; ask a running one to end. A finished one stays."""
    transcript.lock(conversation)
    turn = get(conversation, turn_id)
    if turn.state == State.QUEUED:
        queued = Turn.objects.filter(pk=turn.pk, state=State.QUEUED)
        _end(queued, turn, State.STOPPED)
    elif turn.state == State.RUNNING:
        running = Turn.objects.filter(pk=turn.pk, state=State.RUNNING)
        running.update(cancel_requested_at=Coalesce("cancel_requested_at", Now()))
    return Turn.objects.select_related("reply").get(pk=turn.pk)


@transaction.atomic
def retry(conversation: Conversation, turn_id: int) -> Turn:
    """Queue the latest turn again. What it had said stays, marked as superseded."""
    transcript.lock(conversation)
    turn = get(conversation, turn_id)
    if turn.state not in Turn.RETRYABLE:
        raise CommandError(
            "not_retryable", "Only a reply that did not end well can be retried."
        )
    if conversation.turns.filter(pk__gt=turn.pk).exists():
        raise CommandError(
            "not_latest",
            "Only the latest reply can be retried; send the message again instead.",
        )
    if turn.reply:
        transcript.supersede(conversation, turn.reply.seq, turn.reply.seq)
    turn.reply_seq = transcript.reserve(conversation, 1)
    turn.state, turn.attempt, turn.text, turn.error = State.QUEUED, 0, "", ""
    turn.reply = turn.call = turn.cancel_requested_at = turn.finished_at = None
    turn.save()
    return turn


@transaction.atomic
def edit(
    conversation: Conversation, *, seq: int, text: object, client_id: object
) -> Submitted:
    """Send message `seq` again in other words; it and all after it are superseded."""
    transcript.lock(conversation)
    transcript.check_text(text)
    transcript.check_client_id(client_id)
    if conversation.messages.filter(client_id=client_id).exists():
        return submit(conversation, text=text, client_id=client_id)
    message = conversation.messages.filter(
        seq=seq, role=Message.Role.USER, superseded_at=None
    ).first()
    if message is None:
        raise CommandError("not_found", "There is no such message of yours to edit.")
    if unfinished(conversation.pk).exists():
        raise CommandError(
            "busy", "A reply is still being written. Stop it first, then edit."
        )
    transcript.supersede(conversation, seq)
    return submit(conversation, text=text, client_id=client_id)


def _lease() -> ExpressionWrapper:
    return ExpressionWrapper(
        Now() + timedelta(seconds=settings.TURN_LEASE_SECONDS),
        output_field=DateTimeField(),
    )


def _expired() -> Q:
    return Q(state=State.RUNNING, lease_until__lt=Now())


@transaction.atomic
def claim(conversation_id: int) -> Claim | None:
    """Take the conversation's next turn: queued, or running with an expired lease.

    None: nothing waits, or somebody else has it. A turn whose attempts are used up,
    or that was asked to stop when its process died, ends here.
    """
    Conversation.objects.select_for_update().filter(pk=conversation_id).first()
    for turn in unfinished(conversation_id):
        given_up = turn.attempt >= settings.TURN_MAX_ATTEMPTS
        if turn.state == State.RUNNING and (turn.cancel_requested_at or given_up):
            expired = Turn.objects.filter(_expired(), pk=turn.pk)
            if not _end_orphan(expired, turn):
                return None
            continue
        return _take(turn)
    return None


def _take(turn: Turn) -> Claim | None:
    owner = uuid.uuid4().hex
    free = Turn.objects.filter(Q(state=State.QUEUED) | _expired(), pk=turn.pk)
    taken = free.update(
        state=State.RUNNING,
        owner=owner,
        attempt=F("attempt") + 1,
        lease_until=_lease(),
        started_at=Coalesce("started_at", Now()),
    )
    if not taken:
        return None
    return Claim(turn.pk, turn.conversation_id, owner, turn.attempt + 1)


def _end_orphan(expired: models.QuerySet[Turn], turn: Turn) -> bool:
    stopped = turn.cancel_requested_at is not None
    state = State.STOPPED if stopped else State.INTERRUPTED
    error = "" if stopped else "interrupted"
    return _end(expired, turn, state, error=error)


def _end(
    fenced: models.QuerySet[Turn], turn: Turn, state: str, *, error: str = ""
) -> bool:
    """Move a turn to its last state and store its reply, if the fence still holds."""
    if not fenced.update(
        state=state,
        text=turn.text,
        call=turn.call_id,
        error=error,
        finished_at=Now(),
        lease_until=None,
    ):
        return False
    if turn.text:
        reply = transcript.append_reply(
            turn.conversation, seq=turn.reply_seq, text=turn.text
        )
        Turn.objects.filter(pk=turn.pk).update(reply=reply)
        ModelCall.objects.filter(pk=turn.call_id).update(message=reply)
    else:
        transcript.give_back(turn.conversation_id, turn.reply_seq)
    folding.mark_due(turn.conversation_id)
    return True


@transaction.atomic
def begin(claim: Claim, built: context.Built, model: str) -> Claim | None:
    """Record the request that is about to be sent. None: the turn was lost."""
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
    _held(claim).update(model=model)
    # What an earlier attempt has saved stays with the request that it came from.
    _held(claim).filter(text="").update(call=call)
    return replace(claim, call_id=call.pk)


def _held(claim: Claim) -> models.QuerySet[Turn]:
    return Turn.objects.filter(pk=claim.turn_id, owner=claim.owner, state=State.RUNNING)


def checkpoint(claim: Claim, text: str) -> Hold:
    """Save the reply so far and renew the lease, in one fenced statement."""
    going = _held(claim).filter(cancel_requested_at=None)
    values = {"text": text, "call": claim.call_id} if text else {}
    if going.update(lease_until=_lease(), **values):
        return Hold.KEPT
    return Hold.CANCELLED if _held(claim).exists() else Hold.LOST


@transaction.atomic
def finish(claim: Claim, result: Result) -> Turn | None:
    """End the attempt: state, reply, bill and calibration together. None: lost."""
    turn = _held(claim).select_related("conversation").first()
    if turn is None:
        return None
    # An attempt that died before its first word leaves what an earlier one had saved.
    if result.text:
        turn.text, turn.call_id = result.text, claim.call_id
    if not _end(_held(claim), turn, result.state, error=result.error):
        return None
    if call := ModelCall.objects.filter(pk=claim.call_id).first():
        _bill(call, result)
        _calibrate(turn.conversation, call, result)
    return Turn.objects.select_related("reply").get(pk=turn.pk)


def give_up(claim: Claim, result: Result) -> None:
    """Close the books of a request that failed and is followed by another one."""
    if call := ModelCall.objects.filter(pk=claim.call_id).first():
        _bill(call, result)


def _bill(call: ModelCall, result: Result) -> None:
    ModelCall.objects.filter(pk=call.pk).update(
        tokens_input=result.tokens_input,
        tokens_cached=result.tokens_cached,
        tokens_output=result.tokens_output,
        first_token_ms=result.first_token_ms,
        total_ms=result.total_ms,
        attempts=result.attempts,
        error=result.error,
    )


def _calibrate(conversation: Conversation, call: ModelCall, result: Result) -> None:
    """Move the conversation's token ratio towards what was reported."""
    if not result.tokens_input or not call.tokens_estimated:
        return
    plain = call.tokens_estimated / conversation.token_ratio
    ratio = min(max(result.tokens_input / plain, 0.25), 4.0)
    mean = conversation.token_ratio + CALIBRATION * (ratio - conversation.token_ratio)
    Conversation.objects.filter(pk=conversation.pk).update(token_ratio=mean)


def release(claim: Claim) -> None:
    """Hand a turn back before the process ends; it counts as an attempt no more than
    it must: a queued turn is taken by the next sweep, whatever its attempt."""
    _held(claim).update(state=State.QUEUED, owner="", lease_until=None)


def due() -> list[int]:
    """Conversations that have a turn nobody works on."""
    alive = Turn.objects.filter(
        conversation=OuterRef("conversation"),
        state=State.RUNNING,
        lease_until__gte=Now(),
    )
    waiting = Turn.objects.filter(~Exists(alive), state__in=Turn.UNFINISHED)
    ids = waiting.order_by("conversation_id").values_list("conversation_id", flat=True)
    return list(ids.distinct())
