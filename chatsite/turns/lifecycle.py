"""The life of a turn in the process that runs it: claimed, begun, saved, finished.

Each step is one short transaction, fenced by the lease of the process that runs the
turn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any

from django.conf import settings
from django.db import models, transaction
from django.db.models import Case, Exists, F, OuterRef, Q, Subquery, When
from django.db.models.functions import Cast, Coalesce, Now
from langchain_core.messages.tool import ToolCallChunk

from chatsite.features.tools.tool_loop.steps import close_steps, has_open_calls
from chatsite.llm import pricing, providers
from memory import calibration, context, prompts, transcript
from memory.compaction import lease, preparation
from memory.engine.summaries.material import dump_json
from memory.leases import Claim, LeaseStatus, new_owner
from memory.models import Conversation, Message, ModelCall
from memory.sql import Update, ValueByKey, insert_row, prepared_rows, prepared_update

from . import limits
from .models import TURN_LEASE, Turn
from .requests import model_of


def end(
    fenced: models.QuerySet[Turn], turn: Turn, state: str, *, error: str = ""
) -> bool:
    """Move a turn to its last state and store its reply, if the fence still holds."""
    if not fenced.update(**_ended_as(turn, state, error), **ENDED):
        return False
    close_steps(turn)
    if reply := _store_reply(turn):
        Turn.objects.filter(pk=turn.pk).update(reply=reply)
        ModelCall.objects.filter(pk=turn.call_id).update(message=reply)
    lease.mark_due(turn.conversation_id)
    return True


def _ended_as(turn: Turn, state: str, error: Any) -> dict[str, Any]:
    return {"state": state, "text": turn.text, "call": turn.call_id, "error": error}


ENDED = {"finished_at": Now(), "lease_until": None}


def _store_reply(turn: Turn, reasoning: str = "") -> Message | None:
    if not turn.text:
        transcript.return_number(turn.conversation_id, turn.reply_seq)
        return None
    return transcript.append_reply(
        turn.conversation, seq=turn.reply_seq, text=turn.text, reasoning=reasoning
    )


State = Turn.State


@dataclass(frozen=True, slots=True)
class TurnClaim(Claim):
    """The right to run one attempt of a turn."""

    conversation_id: int
    attempt: int
    call_id: int | None = None  # the request that was recorded for this attempt
    tokens: int = 0  # the estimate for that request
    added: int | None = None  # its tokens beside the messages; None: not known
    model: str = ""  # the model of that request
    renewed_at: float = 0.0  # time.monotonic() before the lease was last renewed
    # As send() has just stored it; None: to be read.
    turn: Turn | None = field(default=None, repr=False, compare=False)
    # The model's view before that request.
    view: context.ConversationView | None = field(
        default=None, repr=False, compare=False
    )

    @property
    def lease_end(self) -> float:
        """The lease's end by this machine's clock, at most that by the database's."""
        return self.renewed_at + settings.TURN_LEASE_SECONDS


# The columns of a request that its result fills.
BILLED = (
    *("tokens_input", "tokens_cached", "tokens_output", "first_token_ms", "total_ms"),
    *("attempts", "error", "body_sha256", "body_fields"),
)


@dataclass(frozen=True, slots=True)
class TurnResult:
    """The end of an attempt, with what the provider reported about it."""

    state: str
    text: str
    reasoning: str = ""
    error: str = ""
    tokens_input: int | None = None
    tokens_cached: int | None = None
    tokens_output: int | None = None
    # Tokens that were written to the provider's cache, as pricing.count_extra() takes
    # them; empty for none.
    kept: tuple[float, ...] = ()
    first_token_ms: int | None = None
    total_ms: int = 0
    attempts: int = 1
    # Of the request that left.
    body_sha256: str = ""
    body_fields: Mapping[str, Any] = field(default_factory=dict)
    # The calls of tools that it asks for, as they came; only those of a complete reply
    # may be run.
    calls: Sequence[ToolCallChunk] = ()
    # What the server has put beside its text.
    extras: Mapping[str, Any] = field(default_factory=dict)


def _orphans() -> models.QuerySet[Turn]:
    """Select turns without a runner that may not run again: stopped, or given up."""
    most = F("attempts_before") + settings.TURN_MAX_ATTEMPTS
    used_up = Q(state=State.RUNNING, attempt__gte=most)
    stopped = Q(cancel_requested_at__isnull=False)
    return Turn.objects.filter(TURN_LEASE.match_free(), stopped | used_up)


def end_orphans(conversation_id: int) -> list[Turn]:
    """End the turns that a dead process left and none may resume, and return them."""
    if not _orphans().filter(conversation_id=conversation_id).exists():
        return []
    with transaction.atomic():
        _lock(conversation_id)
        ended = []
        for turn in unfinished(conversation_id).select_related("conversation"):
            how = (State.INTERRUPTED, "interrupted")
            if turn.cancel_requested_at:
                how = (State.STOPPED, turn.error)
            if end(_orphans().filter(pk=turn.pk), turn, how[0], error=how[1]):
                ended.append(turn.read_again())
        return ended


@transaction.atomic
def claim(conversation_id: int) -> TurnClaim | None:
    """Take the conversation's next turn: queued, or running with an expired lease.

    None: nothing waits, another process has it, it is one for end_orphans(), or its
    owner has as many turns running as may be, or is deactivated.
    """
    _lock(conversation_id)
    for turn in _select_next(conversation=conversation_id):
        if turn.is_allowed and limits.may_run(turn):
            return _claim_row(turn)
    return None


@prepared_rows()
def _select_next(conversation: Any) -> models.QuerySet[Turn]:
    rows = unfinished(conversation).select_related("conversation")
    return rows.annotate(is_allowed=F("conversation__owner__is_active"))[:1]


def next_claim(conversation_id: int) -> tuple[list[Turn], TurnClaim | None]:
    """Return the turns that end_orphans() ended, and the claim of the next one."""
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


def _claim_row(turn: Turn) -> TurnClaim | None:
    owner, started = new_owner(), monotonic()
    rows = Turn.objects.filter(pk=turn.pk).exclude(pk__in=_orphans())
    values = {"attempt": F("attempt") + 1, "started_at": Coalesce("started_at", Now())}
    if not TURN_LEASE.claim_row(rows, owner, state=State.RUNNING, **values):
        return None
    return TurnClaim(
        turn.pk, owner, turn.conversation_id, turn.attempt + 1, renewed_at=started
    )


@transaction.atomic
def begin(
    claim: TurnClaim, built: context.RequestContext, model: str
) -> TurnClaim | LeaseStatus:
    """Record the request that is about to be sent.

    A lease status is returned instead where the turn was lost or is to be stopped.
    """
    started = monotonic()
    if claim.turn:
        conversation = claim.turn.conversation
    else:
        conversation = Conversation.objects.filter(pk=claim.conversation_id).first()
    if conversation is None:
        return LeaseStatus.LOST
    call = record_request(conversation, built, model, ModelCall.Purpose.REPLY)
    begun = {"model": model, "call": call.pk}
    if not _begin(held_turn=claim.row_id, held_by=claim.owner, **begun):
        hold = TURN_LEASE.why_refused(TURN_LEASE.filter_held(claim))
        transaction.set_rollback(True)
        return hold
    recorded = {"call_id": call.pk, "tokens": built.tokens, "view": built.view}
    recorded["added"] = built.added
    recorded["model"] = model
    return replace(claim, **recorded, renewed_at=started, turn=None)


def record_request(
    conversation: Conversation, built: context.RequestContext, model: str, purpose: str
) -> ModelCall:
    """Store the row of a request that is about to be sent, and return it."""
    call = ModelCall(
        conversation=conversation,
        purpose=purpose,
        refs=built.refs,
        sha256=built.sha256,
        model=model,
        provider=providers.name_provider(model),
        tokens_estimated=built.tokens,
        parts=built.parts,
    )
    # As they are in the context: the conversation may have other texts by now.
    prompts.keep_texts(conversation, built.texts)
    return insert_row(call)


@prepared_update()
def _begin(held_turn: Any, held_by: Any, model: Any, call: Any) -> Update:
    # What an earlier attempt has saved stays with the request that it came from.
    of_text = Case(
        When(text="", then=call),
        default=F("call_id"),
        output_field=models.BigIntegerField(),
    )
    rows = TURN_LEASE.filter_held(Claim(held_turn, held_by)).filter(
        cancel_requested_at=None
    )
    return rows, {
        "lease_until": TURN_LEASE.new_expiry(),
        "model": model,
        "call": of_text,
    }


def lock_held(claim: TurnClaim) -> Turn | None:
    """Return the turn, locked together with its conversation. None: lost.

    It is annotated with `has_open_steps`, and with `next_open`: the number of the first
    message of another unfinished turn.
    """
    found = _locked(turn=claim.row_id, owner=claim.owner)
    return found[0] if found else None


@prepared_rows()
def _locked(turn: Any, owner: Any) -> models.QuerySet[Turn]:
    rows = TURN_LEASE.filter_held(Claim(turn, owner)).order_by()
    # In the order of stop(): each waiting for what the other holds would be a deadlock.
    rows = rows.select_for_update(of=("conversation", "self"))
    others = _open_seqs(OuterRef("conversation")).exclude(pk=OuterRef("pk"))
    rows = rows.annotate(
        has_open_steps=has_open_calls(), next_open=Subquery(others[:1])
    )
    return rows.select_related("conversation")


def checkpoint(claim: TurnClaim, text: str) -> LeaseStatus:
    """Save the reply so far and renew the lease, in one fenced statement."""
    values = {"text": text, "text_attempt": claim.attempt, "call": claim.call_id}
    mine = {"held_turn": claim.row_id, "held_by": claim.owner}
    if _checkpoint(**mine, **(values if text else {})):
        return LeaseStatus.KEPT
    return TURN_LEASE.why_refused(TURN_LEASE.filter_held(claim))


@prepared_update()
def _checkpoint(held_turn: Any, held_by: Any, **values: Any) -> Update:
    rows = TURN_LEASE.filter_held(Claim(held_turn, held_by)).filter(
        cancel_requested_at=None
    )
    return rows, {"lease_until": TURN_LEASE.new_expiry(), **values}


@transaction.atomic
def checkpoint_all(texts: Mapping[TurnClaim, str]) -> bool:
    """Save several replies as checkpoint() does, in one statement.

    False: not all of them were saved, as a lease was lost, a stop was requested, or
    another transaction has locked the row.
    """
    said = [(claim, text) for claim, text in texts.items() if text]
    count = _checkpoint_all(
        turns=[claim.row_id for claim in texts],
        owners=[claim.owner for claim in texts],
        texts=dump_json({claim.row_id: text for claim, text in said}),
        calls=dump_json({claim.row_id: claim.call_id for claim, _ in said}),
        attempts=dump_json({claim.row_id: claim.attempt for claim, _ in said}),
    )
    return count == len(texts)


@prepared_update()
def _checkpoint_all(
    turns: Any, owners: Any, texts: Any, calls: Any, attempts: Any
) -> Update:
    held = Turn.objects.filter(
        TURN_LEASE.owned, pk__among=turns, owner__among=owners, cancel_requested_at=None
    )
    # Two that wait for each other's rows would be a deadlock, so this one never waits.
    free = held.select_for_update(skip_locked=True).values("pk")
    return Turn.objects.filter(pk__in=free), {
        "lease_until": TURN_LEASE.new_expiry(),
        "text": Coalesce(ValueByKey(texts, "pk"), F("text")),
        "call": _number_by_key(calls, "call_id"),
        "text_attempt": _number_by_key(attempts, "text_attempt"),
    }


def _number_by_key(numbers: Any, column: str) -> Coalesce:
    number = Cast(ValueByKey(numbers, "pk"), models.BigIntegerField())
    return Coalesce(number, F(column), output_field=models.BigIntegerField())


@transaction.atomic
def finish(claim: TurnClaim, result: TurnResult) -> Turn | None:
    """End the attempt: state, reply, bill and calibration together. None: lost.

    A second call, after an answer that got lost, finds what the first one did.
    """
    turn = lock_held(claim)
    if turn is None:
        return _ended(claim)
    if turn.has_open_steps:
        close_steps(turn)
    # An attempt that died before its first word leaves what an earlier one had saved.
    reasoning = ""
    if result.text:
        turn.text, turn.call_id = result.text, claim.call_id
        reasoning = result.reasoning
    # Why it was to be stopped was written into its row.
    why = turn.error if result.state == State.STOPPED else ""
    turn.state, turn.error = result.state, result.error or why
    turn.reply = _store_reply(turn, reasoning)
    close_turn(turn, claim, result)
    return turn


def close_turn(
    turn: Turn, claim: TurnClaim, result: TurnResult, *, is_calibrated: bool = True
) -> None:
    """Write the end of a turn that was run, as its fields say.

    In the transaction of lock_held(): the turn's row, the bill of its last request, and
    the link from the request that its reply came from. `is_calibrated`: the request was
    made here.
    """
    ended = _ended_as(turn, turn.state, turn.error)
    reply = turn.reply and turn.reply.pk
    _write_end(held_turn=claim.row_id, held_by=claim.owner, reply=reply, **ended)
    link = {"message": turn.reply} if turn.reply else {}
    is_same = turn.call_id == claim.call_id
    is_billed = bill(turn.conversation, claim, result, **(link if is_same else {}))
    if link and not (is_same and is_billed):
        ModelCall.objects.filter(pk=turn.call_id).update(**link)
    if is_calibrated:
        mark_compaction(turn, claim, calibrated(turn.conversation, claim, result))


def mark_compaction(turn: Turn, claim: TurnClaim, values: dict[str, object]) -> None:
    """Write when a compaction is to look at the conversation, with other columns.

    That is now, unless the model's view is known and shows that nothing is due.
    """
    conversation = turn.conversation
    for name, value in values.items():
        setattr(conversation, name, value)
    view = None
    if claim.view and turn.reply:
        view = context.advance_view(claim.view, conversation, turn.reply)
    if view:
        room = providers.context_window(model_of(conversation))
        turn.is_compaction_due, due_at = preparation.find_due(
            conversation, lambda _: turn.next_open, room, view
        )
        if not turn.is_compaction_due:
            if due_at == conversation.compaction_due_at and not values:
                return
            values = {"compaction_due_at": due_at, **values}
    lease.mark_due(conversation.pk, **values)


@prepared_update()
def _write_end(held_turn: Any, held_by: Any, **values: Any) -> Update:
    return TURN_LEASE.filter_held(Claim(held_turn, held_by)), values | ENDED


def _ended(claim: TurnClaim) -> Turn | None:
    rows = Turn.objects.filter(pk=claim.row_id, owner=claim.owner)
    ended = rows.exclude(state__in=Turn.UNFINISHED)
    return ended.select_related("conversation", "reply").first()


@transaction.atomic
def give_up(claim: TurnClaim, result: TurnResult) -> None:
    """Close the books of a request that failed and is followed by another one."""
    conversation = Conversation.objects.filter(pk=claim.conversation_id).first()
    if conversation:
        bill(conversation, claim, result)


def bill(
    conversation: Conversation, claim: TurnClaim, result: TurnResult, **link: Message
) -> bool:
    bill = {name: getattr(result, name) for name in BILLED}
    if result.kept:
        bill["tokens_extra"] = pricing.count_extra(claim.model, *result.kept)
    linked = {name: row.pk for name, row in link.items()}
    if not _bill(call=claim.call_id, **bill, **linked):
        return False
    call = ModelCall(
        pk=claim.call_id,
        conversation=conversation,
        model=claim.model,
        tokens_estimated=claim.tokens,
        **bill,
    )
    limits.charge_call(call, result.reasoning + result.text, claim.row_id)
    return True


@prepared_update()
def _bill(call: Any, **values: Any) -> Update:
    # One with an error was billed already, by a call whose answer was lost.
    return ModelCall.objects.filter(pk=call, error=""), values


def calibrated(
    conversation: Conversation, claim: TurnClaim, result: TurnResult
) -> dict[str, object]:
    """Return the conversation's new estimate, which follows the reported tokens."""
    if not result.tokens_input or not claim.tokens:
        return {}
    return calibration.follow_report(
        conversation, claim.tokens, result.tokens_input, claim.added
    )


def release() -> int:
    """Hand back every turn of this process before it ends; return how many there were.

    This counts as an attempt no more than it must: a queued turn is taken by the next
    sweep, whatever its attempt.
    """
    return TURN_LEASE.release_row(TURN_LEASE.filter_held_here(), state=State.QUEUED)


def waiting() -> models.QuerySet[Turn]:
    """Select turns of conversations that no process works on."""
    open_turns = unfinished(OuterRef("conversation"))
    alive_or_asking = open_turns.filter(
        TURN_LEASE.match_alive() | Q(state=State.WAITING)
    )
    rows = Turn.objects.filter(~Exists(alive_or_asking), state__one_of=Turn.UNFINISHED)
    return limits.with_room(rows)


def due() -> list[int]:
    """Return the conversations with a turn that no process works on."""
    ids = waiting().order_by("conversation_id").values_list("conversation_id")
    return [pk for (pk,) in ids.distinct()]


def position(turn: Turn) -> int:
    if turn.is_finished:
        return 0
    return unfinished(turn.conversation_id).filter(pk__lt=turn.pk).count()


def unfinished(conversation_id: int | OuterRef) -> models.QuerySet[Turn]:
    rows = Turn.objects.filter(
        conversation_id=conversation_id, state__one_of=Turn.UNFINISHED
    )
    return rows.order_by("pk")


def open_from(conversation: Conversation) -> int | None:
    """Return the number of the first message whose turn is not finished."""
    return _open_seqs(conversation.pk).first()


def with_open_from(conversation_id: int) -> Conversation | None:
    """Return the conversation, read together with its open_from(). None: it is gone."""
    found = _read_with_open_from(conversation=conversation_id)
    return found[0] if found else None


@prepared_rows()
def _read_with_open_from(conversation: Any) -> models.QuerySet[Conversation]:
    first = Subquery(_open_seqs(OuterRef("pk"))[:1])
    rows = Conversation.objects.filter(pk=conversation).order_by()
    return rows.annotate(open_from=first)


def _open_seqs(conversation_id: int | OuterRef) -> models.QuerySet[Turn, int]:
    return unfinished(conversation_id).values_list("user_message__seq", flat=True)
