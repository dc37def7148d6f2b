"""The states of a turn: submitted, claimed, begun, saved, finished; stopped, retried,
edited. Each step is one short transaction, fenced by the lease of who runs the turn.
"""

from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any

from django.conf import settings
from django.db import models, transaction
from django.db.models import Case, Exists, F, OuterRef, Q, Subquery, Value, When
from django.db.models.functions import Coalesce, Now
from django.utils.translation import gettext as _

from chatsite.protocol.errors import CommandError
from memory import calibration, context, transcript
from memory.compaction import lease
from memory.leases import LeaseStatus, new_owner
from memory.models import Conversation, Message, ModelCall

from . import limits, requests
from .models import Turn


def end(
    fenced: models.QuerySet[Turn],
    turn: Turn,
    state: str,
    *,
    error: str = "",
    reasoning: str = "",
) -> bool:
    """Move a turn to its last state and store its reply, if the fence still holds."""
    if not fenced.update(**_ended_as(turn, state, error)):
        return False
    if reply := _store_reply(turn, reasoning):
        Turn.objects.filter(pk=turn.pk).update(reply=reply)
        ModelCall.objects.filter(pk=turn.call_id).update(message=reply)
    lease.mark_due(turn.conversation_id)
    return True


def _ended_as(turn: Turn, state: str, error: Any) -> dict[str, Any]:
    return {
        "state": state,
        "text": turn.text,
        "call": turn.call_id,
        "error": error,
        "finished_at": Now(),
        "lease_until": None,
    }


def _store_reply(turn: Turn, reasoning: str = "") -> Message | None:
    if not turn.text:
        transcript.give_back(turn.conversation_id, turn.reply_seq)
        return None
    return transcript.append_reply(
        turn.conversation, seq=turn.reply_seq, text=turn.text, reasoning=reasoning
    )


State = Turn.State
LEASE = Turn.LEASE


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to run one attempt of a turn, as long as its lease is renewed."""

    turn_id: int
    conversation_id: int
    owner: str
    attempt: int
    call_id: int | None = None  # of the request that was recorded for this attempt
    tokens: int = 0  # of that request, estimated
    renewed_at: float = 0.0  # time.monotonic() before the lease was last renewed
    # As send() has just stored it; None: to be read.
    turn: Turn | None = field(default=None, repr=False, compare=False)
    # What the model saw before that request.
    view: context.View | None = field(default=None, repr=False, compare=False)

    @property
    def lease_end(self) -> float:
        """By the clock of this machine, and never later than by the database's."""
        return self.renewed_at + settings.TURN_LEASE_SECONDS


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


def _orphans() -> models.QuerySet[Turn]:
    """Turns without a runner that may not run again: asked to stop, or given up."""
    most = F("attempts_before") + settings.TURN_MAX_ATTEMPTS
    used_up = Q(state=State.RUNNING, attempt__gte=most)
    stopped = Q(cancel_requested_at__isnull=False)
    return Turn.objects.filter(LEASE.free(), stopped | used_up)


def end_orphans(conversation_id: int) -> list[Turn]:
    """End what a dead process left and none may go on with; the turns that ended."""
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

    None: nothing waits, another process has it, it is one for end_orphans(), or its
    owner has as many turns running as may be.
    """
    _lock(conversation_id)
    turn = unfinished(conversation_id).select_related("conversation").first()
    return _take(turn) if turn and limits.may_run(turn) else None


def next_claim(conversation_id: int) -> tuple[list[Turn], Claim | None]:
    """The turns that end_orphans() ended, and the claim of the next one."""
    first = unfinished(conversation_id).first()
    if first is None:
        return [], None
    # Turns run in their order, so only the first one can have had a runner.
    was_run = first.state == State.RUNNING or first.cancel_requested_at is not None
    ended = end_orphans(conversation_id) if was_run else []
    return ended, claim(conversation_id)


def _lock(conversation_id: int) -> None:
    rows = Conversation.objects.select_for_update().filter(pk=conversation_id)
    rows.order_by().values_list("pk").first()


def _take(turn: Turn) -> Claim | None:
    owner, started = new_owner(), monotonic()
    rows = Turn.objects.filter(pk=turn.pk).exclude(pk__in=_orphans())
    values = {"attempt": F("attempt") + 1, "started_at": Coalesce("started_at", Now())}
    if not LEASE.claim(rows, owner, state=State.RUNNING, **values):
        return None
    return Claim(
        turn.pk, turn.conversation_id, owner, turn.attempt + 1, renewed_at=started
    )


@transaction.atomic
def begin(claim: Claim, built: context.Built, model: str) -> Claim | LeaseStatus:
    """Record the request that is about to be sent, unless the turn was lost or is to be
    stopped."""
    started = monotonic()
    if claim.turn:
        conversation = claim.turn.conversation
    else:
        conversation = Conversation.objects.filter(pk=claim.conversation_id).first()
    if conversation is None:
        return LeaseStatus.LOST
    call = ModelCall.objects.create(
        conversation=conversation,
        purpose=ModelCall.Purpose.REPLY,
        refs=built.refs,
        sha256=built.sha256,
        model=model,
        tokens_estimated=built.tokens,
    )
    context.keep_prompts(conversation)
    # What an earlier attempt has saved stays with the request that it came from.
    of_text = Case(
        When(text="", then=Value(call.pk)),
        default=F("call_id"),
        output_field=models.BigIntegerField(),
    )
    hold = LEASE.renew_unless_cancelled(_held(claim), model=model, call=of_text)
    if hold is not LeaseStatus.KEPT:
        transaction.set_rollback(True)
        return hold
    recorded = {"call_id": call.pk, "tokens": built.tokens, "view": built.view}
    return replace(claim, **recorded, renewed_at=started, turn=None)


def _held(claim: Claim) -> models.QuerySet[Turn]:
    return Turn.objects.filter(LEASE.held_by(claim.owner), pk=claim.turn_id)


def checkpoint(claim: Claim, text: str) -> LeaseStatus:
    """Save the reply so far and renew the lease, in one fenced statement."""
    values = {"text": text, "text_attempt": claim.attempt, "call": claim.call_id}
    return LEASE.renew_unless_cancelled(_held(claim), **(values if text else {}))


@transaction.atomic
def finish(claim: Claim, result: Result) -> Turn | None:
    """End the attempt: state, reply, bill and calibration together. None: lost.

    A second call, after an answer that got lost, finds what the first one did.
    """
    # In the order of stop(): each waiting for what the other holds would be a deadlock.
    rows = _held(claim).select_for_update(of=("conversation", "self"))
    turn = rows.select_related("conversation").first()
    if turn is None:
        return _ended(claim)
    # An attempt that died before its first word leaves what an earlier one had saved.
    reasoning = ""
    if result.text:
        turn.text, turn.call_id = result.text, claim.call_id
        reasoning = result.reasoning
    # Why it was to be stopped was written into its row.
    why = turn.error if result.state == State.STOPPED else ""
    turn.state, turn.error = result.state, result.error or why
    turn.reply = _store_reply(turn, reasoning)
    ended = _ended_as(turn, turn.state, turn.error)
    _held(claim).update(reply=turn.reply, **ended)
    _close_books(turn, claim, result)
    reported = _calibrated(turn.conversation, claim, result)
    lease.mark_due(turn.conversation_id, **reported)
    return turn


def _ended(claim: Claim) -> Turn | None:
    rows = Turn.objects.filter(pk=claim.turn_id, owner=claim.owner)
    ended = rows.exclude(state__in=Turn.UNFINISHED)
    return ended.select_related("conversation", "reply").first()


def _close_books(turn: Turn, claim: Claim, result: Result) -> None:
    """Bill the last request, and link the reply with the one that it came from."""
    link = {"message": turn.reply} if turn.reply else {}
    is_same = turn.call_id == claim.call_id
    is_billed = _bill(turn.conversation, claim, result, **(link if is_same else {}))
    if link and not (is_same and is_billed):
        ModelCall.objects.filter(pk=turn.call_id).update(**link)


@transaction.atomic
def give_up(claim: Claim, result: Result) -> None:
    """Close the books of a request that failed and is followed by another one."""
    conversation = Conversation.objects.filter(pk=claim.conversation_id).first()
    if conversation:
        _bill(conversation, claim, result)


def _bill(
    conversation: Conversation, claim: Claim, result: Result, **link: Message
) -> bool:
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
    unbilled = ModelCall.objects.filter(pk=claim.call_id, error="")
    if not unbilled.update(**bill, **link):
        return False
    call = ModelCall(conversation=conversation, tokens_estimated=claim.tokens)
    call.tokens_input, call.tokens_output = result.tokens_input, result.tokens_output
    call.error = result.error
    limits.charge(call, result.reasoning + result.text)
    return True


def _calibrated(
    conversation: Conversation, claim: Claim, result: Result
) -> dict[str, object]:
    """The conversation's estimate, which follows what was reported."""
    if not result.tokens_input or not claim.tokens:
        return {}
    return calibration.follow(conversation, claim.tokens, result.tokens_input)


def release() -> int:
    """Hand every turn of this process back before it ends; how many they were.

    This counts as an attempt no more than it must: a queued turn is taken by the next
    sweep, whatever its attempt.
    """
    mine = Turn.objects.filter(LEASE.held_here())
    return LEASE.release(mine, state=State.QUEUED)


def waiting() -> models.QuerySet[Turn]:
    """Turns of conversations that no process works on."""
    alive = Turn.objects.filter(LEASE.alive(), conversation=OuterRef("conversation"))
    rows = Turn.objects.filter(~Exists(alive), state__in=Turn.UNFINISHED)
    return limits.with_room(rows)


def due() -> list[int]:
    """Conversations with a turn that no process works on."""
    ids = waiting().order_by("conversation_id").values_list("conversation_id")
    return [pk for (pk,) in ids.distinct()]


@dataclass(frozen=True, slots=True)
class Submitted:
    turn: Turn
    message: Message
    position: int  # unfinished turns before this one
    created: bool  # False: this client_id was seen before
    title: str = ""  # set when this message gave the conversation its title
    claim: Claim | None = None  # where this process is to run it at once


@transaction.atomic
def submit(conversation: Conversation, *, text: object, client_id: object) -> Submitted:
    """Store a message and queue its turn; running turns never make it wait or fail.

    Raises transcript.TextError when the text or the id cannot be stored, CommandError
    when the model could never take the text.
    """
    message, created = transcript.append_user_message(
        conversation, text=text, client_id=client_id
    )
    if not created:
        return _known(message)
    requests.check_fits(conversation, message)
    turn = _queue(message)
    title = _suggest_title(message)
    return Submitted(turn, message, position(turn), created=True, title=title)


@transaction.atomic
def send(
    conversation: Conversation, *, text: object, client_id: object, run: bool = True
) -> Submitted:
    """submit() within the limits of its owner. With nothing in front of it, the turn is
    claimed in the same transaction, if it may `run` in this process."""
    message, created = transcript.append_user_message(
        conversation, text=text, client_id=client_id
    )
    if not created:
        return _known(message)
    requests.check_fits(conversation, message)
    open_turns = limits.admit_turn(conversation.owner_id, stored=False)
    before = [pk for pk, _ in open_turns].count(conversation.pk)
    claim = None
    if run and not before and limits.has_place(open_turns):
        claim = _insert_claimed(message)
        turn = claim.turn
    else:
        turn = _queue(message)
    title = _suggest_title(message)
    return Submitted(turn, message, before, created=True, title=title, claim=claim)


def _known(message: Message) -> Submitted:
    turn = message.turns.get()
    return Submitted(turn, message, position(turn), created=False)


def _queue(message: Message, **values: Any) -> Turn:
    return Turn.objects.create(
        conversation=message.conversation,
        user_message=message,
        reply_seq=message.seq + 1,
        **values,
    )


def _insert_claimed(message: Message) -> Claim:
    owner, started = new_owner(), monotonic()
    turn = _queue(
        message,
        state=State.RUNNING,
        attempt=1,
        owner=owner,
        lease_until=LEASE.end(),
        started_at=Now(),
    )
    ids = (turn.pk, turn.conversation_id)
    return Claim(*ids, owner, turn.attempt, renewed_at=started, turn=turn)


def _suggest_title(message: Message) -> str:
    if message.conversation.title_set_by != Conversation.TitleSource.NONE:
        return ""
    return transcript.suggest_title(message.conversation, message.text)


def position(turn: Turn) -> int:
    if turn.is_finished:
        return 0
    return unfinished(turn.conversation_id).filter(pk__lt=turn.pk).count()


def unfinished(conversation_id: int | OuterRef) -> models.QuerySet[Turn]:
    rows = Turn.objects.filter(
        conversation_id=conversation_id, state__in=Turn.UNFINISHED
    )
    return rows.order_by("pk")


def open_from(conversation: Conversation) -> int | None:
    """The number of the first message whose turn is not finished."""
    return _open_seqs(conversation.pk).first()


def with_open_from(conversation_id: int) -> Conversation | None:
    """The conversation, read together with its open_from()."""
    rows = Conversation.objects.filter(pk=conversation_id)
    first = Subquery(_open_seqs(OuterRef("pk"))[:1])
    return rows.annotate(open_from=first).first()


def _open_seqs(conversation_id: int | OuterRef) -> models.QuerySet[Turn, int]:
    return unfinished(conversation_id).values_list("user_message__seq", flat=True)


def get(conversation: Conversation, turn_id: int) -> Turn:
    turn = conversation.turns.filter(pk=turn_id).first()
    if turn is None:
        raise CommandError(
            "not_found", _("There is no such turn in this conversation.")
        )
    return turn


@transaction.atomic
def stop(conversation: Conversation, turn_id: int) -> Turn:
    """End a queued turn at once; ask a running one to end. A finished one stays."""
    transcript.lock(conversation)
    turn = get(conversation, turn_id)
    if turn.state == State.QUEUED:
        queued = Turn.objects.filter(pk=turn.pk, state=State.QUEUED)
        end(queued, turn, State.STOPPED)
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
            "not_retryable", _("Only a reply that did not end well can be retried.")
        )
    if conversation.turns.filter(pk__gt=turn.pk).exists():
        raise CommandError(
            "not_latest",
            _("Only the latest reply can be retried; send the message again instead."),
        )
    check_answerable(turn)
    if turn.reply:
        transcript.supersede(conversation, turn.reply.seq, turn.reply.seq)
    return requeue(conversation, turn)


def check_answerable(turn: Turn) -> None:
    message = turn.user_message
    if message.superseded_at or message.deleted_at:
        raise CommandError("not_found", _("The message it would answer is gone."))


def requeue(conversation: Conversation, turn: Turn) -> Turn:
    """Queue a turn again, under a new number for its reply."""
    turn.reply_seq = transcript.reserve(conversation, 1)
    turn.state, turn.text, turn.error = State.QUEUED, "", ""
    turn.attempts_before = turn.text_attempt = turn.attempt
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
        raise _not_editable(conversation, seq)
    if unfinished(conversation.pk).exists():
        raise CommandError(
            "busy", _("A reply is still being written. Stop it first, then edit.")
        )
    transcript.supersede(conversation, seq)
    return submit(conversation, text=text, client_id=client_id)


def _not_editable(conversation: Conversation, seq: int) -> CommandError:
    """Why message `seq` cannot be edited: mostly because another tab was faster."""
    rows = conversation.messages.filter(role=Message.Role.USER)
    newer = rows.filter(seq__gt=seq, superseded_at=None).order_by("seq").first()
    if newer and rows.filter(seq=seq).exists():
        text = _(
            "Message #%(old)s was edited elsewhere meanwhile and is #%(new)s now. Your "
            "text is still here: send it again to put it in the place of #%(new)s."
        )
        values = {"old": seq, "new": newer.seq}
        return CommandError("superseded", text % values, seq=newer.seq)
    return CommandError("not_found", _("There is no such message of yours to edit."))


# Why a turn was cancelled.
MESSAGE_DELETED = "message_deleted"


@transaction.atomic
def regenerate(conversation: Conversation, turn_id: int) -> Turn:
    """Queue the latest turn for another reply; the one it has stays, superseded."""
    transcript.lock(conversation)
    turn = get(conversation, turn_id)
    if not turn.is_finished:
        raise CommandError(
            "busy", _("The reply is still being written. Stop it first.")
        )
    if conversation.turns.filter(pk__gt=turn.pk).exists():
        raise CommandError(
            "not_latest",
            _("Only the latest reply can be regenerated. Branch to redo an older one."),
        )
    check_answerable(turn)
    if turn.reply:
        transcript.supersede(conversation, turn.reply.seq, turn.reply.seq)
    return requeue(conversation, turn)


def stop_all(conversation: Conversation) -> list[int]:
    """End what is queued; the running turns, which were asked to end."""
    # The queued ones first: the end of a running one starts the next.
    waiting = unfinished(conversation.pk).order_by("-pk")
    stopped = [stop(conversation, pk) for pk in waiting.values_list("pk", flat=True)]
    return [turn.pk for turn in stopped if turn.state == State.RUNNING]


@transaction.atomic
def fence(conversation: Conversation) -> list[int]:
    """End every unfinished turn now; what runs one of them can write nothing more. The
    turns that were running.

    Raises Conversation.DoesNotExist when the conversation is gone.
    """
    transcript.lock(conversation)
    open_turns = list(unfinished(conversation.pk).select_related("conversation"))
    # The last one first, so that each gives the number of its reply back.
    for turn in reversed(open_turns):
        row = Turn.objects.filter(pk=turn.pk, state__in=Turn.UNFINISHED)
        end(row, turn, State.STOPPED)
    return [turn.pk for turn in open_turns if turn.state == State.RUNNING]


@transaction.atomic
def cancel_unanswerable(conversation: Conversation) -> list[int]:
    """Cancel the turns whose message was deleted: a queued one now, a running one as
    soon as its runner hears of it. Which they were.

    Call it inside the transaction that locked the conversation.
    """
    found = unfinished(conversation.pk).select_related("conversation")
    gone = list(found.filter(user_message__deleted_at__isnull=False))
    for turn in reversed(gone):
        row = Turn.objects.filter(pk=turn.pk)
        queued = row.filter(state=State.QUEUED)
        if not end(queued, turn, State.STOPPED, error=MESSAGE_DELETED):
            row.filter(state=State.RUNNING).update(
                cancel_requested_at=Coalesce("cancel_requested_at", Now()),
                error=MESSAGE_DELETED,
            )
    return [turn.pk for turn in gone]


__all__ = [
    "MESSAGE_DELETED",
    "Claim",
    "LeaseStatus",
    "Result",
    "Submitted",
    "begin",
    "cancel_unanswerable",
    "checkpoint",
    "claim",
    "due",
    "edit",
    "end_orphans",
    "fence",
    "finish",
    "get",
    "give_up",
    "open_from",
    "position",
    "regenerate",
    "release",
    "retry",
    "send",
    "stop",
    "stop_all",
    "submit",
    "unfinished",
    "waiting",
    "with_open_from",
]
