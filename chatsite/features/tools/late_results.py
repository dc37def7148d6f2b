"""Results that come after the turn that asked for them: found, delivered, published.

A call in the state "late" has a handle and a time of the next look. Any process looks,
and stores what it finds, once; docs/tools.md has the states.
"""

import asyncio
import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from channels.db import database_sync_to_async
from django.db import transaction
from django.db.models import DateTimeField, ExpressionWrapper, F, QuerySet
from django.db.models.functions import Least, Now
from django.utils.translation import gettext as _
from langchain_core.tools import ToolException

from chatsite import plugins
from chatsite.features.tools import registry
from chatsite.features.tools.context import (
    CallCancelledError,
    Cancel,
    Look,
    PendingResult,
)
from chatsite.features.tools.events import ToolEvent
from chatsite.features.tools.models import ToolCall
from chatsite.protocol import events
from chatsite.protocol.errors import CommandError
from chatsite.turns import runner
from chatsite.turns.models import Turn
from memory import transcript
from memory.database import name_of
from memory.leases import Claim, Lease, new_owner
from memory.models import Change, Conversation, Message
from memory.sql import round_robin_by_user

from . import consent
from .tool_loop import answers, call_context, reminders, summaries
from .tool_loop.answers import CallAnswer
from .tool_loop.ending import end_calls

logger = logging.getLogger(__name__)

State = ToolCall.State
# One look may take so long; another process looks again if this one dies.
LOOK_SECONDS = 20.0
LOOK_LEASE = Lease(ToolCall, lambda: timedelta(seconds=60), "next_look_at")
LOOKS_AT_ONCE = 8
# Between looks, whatever a tool says. After one that failed it is a share of the time
# that the call has waited so far, and where no tool looks, the longest.
LEAST_PAUSE, MOST_PAUSE = 1.0, 86_400.0
FAILED_SHARE = 4
# Turns that late results may start, one after the other, before the user says
# something: each costs a request, and may call tools whose results are late again.
MOST_OWN_TURNS = 10

NOT_IN_TIME = "No result: it did not come in time."
CANCELLED = "No result: the user has cancelled this call."
# The columns of a call that there is nothing more to look after: what its tool was
# asked with can have the words of the call.
OVER = {"handle": None, "next_look_at": None}
# The error of a late call whose message was deleted.
CALL_DELETED = "call_deleted"


@dataclass(frozen=True, slots=True)
class LateResult:
    """A call whose late result was stored, and the turn of its own, if it has one."""

    call: ToolCall
    turn: Turn | None = None


def deliver(pk: int, content: Any, *, failed: bool = False) -> LateResult | None:
    """Store the result of a late call, once. None: it has ended already, or is gone.

    Any process that learns of a result may call it; tell() lets the pages know.
    """
    state, error = (State.FAILED, "tool_error") if failed else (State.DONE, "")
    return _end(pk, CallAnswer(state, content, error))


@transaction.atomic
def cancel(conversation: Conversation, pk: int) -> LateResult:
    """Stop waiting for a result.

    The model is notified in the next turn, the tool by the next background job. Raises
    CommandError if the call does not wait for a result.
    """
    known = ToolCall.objects.filter(conversation=conversation, pk=pk).exists()
    if not known:
        raise CommandError("not_found", _("This no longer exists. Reload the page."))
    answer = CallAnswer(State.CANCELLED, CANCELLED, "cancelled")
    done = _end(pk, answer, tells_tool=True)
    if done is None:
        raise CommandError("not_late", _("This call is not waiting for a result."))
    conversation.changes.create(action=Change.Action.CANCEL_CALL)
    return done


def forget(conversation: Conversation, seq: int, **_: object) -> None:
    """Cancel the late results of calls that the deleted message asked or answered.

    Their tools are notified if they want to be; the handles are deleted at once, or
    after that.
    """
    calls = ToolCall.of_message(conversation, seq)
    late = calls.filter(state=State.LATE)
    end_calls(late, State.CANCELLED, CALL_DELETED, tells_tool=True)
    told = [tool.name for tool in registry.known().values() if tool.cancel]
    calls.exclude(name__in=told, next_look_at__isnull=False).update(**OVER)


@transaction.atomic
def _end(pk: int, answer: CallAnswer, *, tells_tool: bool = False) -> LateResult | None:
    found = ToolCall.objects.filter(pk=pk, state=State.LATE)
    conversation = Conversation.objects.filter(tool_calls__in=found).first()
    if conversation is None:
        return None
    # The lock comes first: another process may be storing the same result.
    transcript.lock_for_update(conversation)
    call = found.select_related("request").first()
    if call is None:
        return None
    conversation.refresh_from_db()
    has_turn = _starts_turn(conversation, call, answer)
    room = answers.find_room(conversation) if has_turn else 0
    seq = transcript.reserve_numbers(conversation, room + 1 + has_turn) + room
    message = answers.append_result(
        *(call, conversation, seq, answer.content, answer.summary),
        late_for=call.request.seq,
    )
    is_wanted = answer.state == State.DONE and call.request.superseded_at is None
    end_calls(
        found,
        answer.state,
        answer.error,
        tells_tool=tells_tool,
        late_result=message,
        is_unread=is_wanted and bool(reminders.text_of(call)),
    )
    turn = None
    if has_turn:
        turn = Turn.objects.create(
            conversation=conversation,
            user_message=message,
            reply_seq=seq + 1,
            room=room,
        )
    return LateResult(answers.read(pk, "conversation"), turn)


def _starts_turn(
    conversation: Conversation, call: ToolCall, answer: CallAnswer
) -> bool:
    """Return whether the result starts a turn of its own for the model.

    That is a setting of the conversation; cancelled and hidden calls start none.
    """
    asked = call.request
    is_gone = asked.excluded_at or asked.superseded_at or asked.deleted_at
    is_wanted = conversation.answers_late and answer.state != State.CANCELLED
    if not is_wanted or conversation.deleted_at or is_gone:
        return False
    turns = conversation.turns.order_by("-pk").values_list("user_message__role")
    latest = [role for (role,) in turns[:MOST_OWN_TURNS]]
    return len(latest) < MOST_OWN_TURNS or Message.Role.USER in latest


def events_of(done: LateResult) -> tuple[events.Event, ...]:
    """Return the events for the pages: the call, the changed memory, the turn."""
    told: tuple[events.Event, ...] = (
        ToolEvent.from_call(done.call),
        events.Memory(None, "changed"),
    )
    if done.turn:
        told += (events.State(done.turn.pk, done.turn.state),)
    return told


async def tell(done: LateResult) -> None:
    """Let every page know, and start the turn of its own."""
    for event in events_of(done):
        await events.publish_event(done.call.conversation_id, event)
    if done.call.is_unread:
        told = {"kind": reminders.KIND, "conversation": done.call.conversation}
        await plugins.news_found.asend_robust(ToolCall, **told)
    if done.turn and runner.is_sweeping():
        runner.start_turns(done.call.conversation_id)


def due() -> QuerySet[ToolCall]:
    """Return the calls to look after.

    These are late calls whose next look or whose deadline is due, and cancelled ones
    whose tools have to be notified. Those of deactivated users wait until they are
    active again.
    """
    rows = ToolCall.objects.filter(next_look_at__lte=Now())
    return rows.filter(conversation__owner__is_active=True)


def claim() -> list[ToolCall]:
    """Take some that are due, for one look each; no other process looks meanwhile."""
    owner = new_owner()
    ordered = round_robin_by_user(due(), "conversation__owner", "next_look_at")
    first = ordered.values_list("pk", flat=True)
    chosen = due().filter(pk__in=list(first[:LOOKS_AT_ONCE]))
    LOOK_LEASE.renew_row(chosen, owner=owner)
    mine = ToolCall.objects.filter(owner=owner)
    mine = mine.select_related(*call_context.RELATED)
    return list(mine.annotate(now=Now()))


async def look(call: ToolCall) -> None:
    """Look after a claimed call: ask its tool for the result, and store that.

    The tool of a cancelled call is notified instead.
    """
    # Servers of tools may not have been asked since this process has started.
    await registry.ready()
    tool = registry.available().get(call.name)
    is_late = call.state == State.LATE
    if is_late and call.deadline_at and call.deadline_at <= call.now:
        await _finish(call, CallAnswer(State.FAILED, NOT_IN_TIME, "deadline"))
    elif call.deadline_at and call.deadline_at <= call.now:
        await database_sync_to_async(_let_go)(call)
    elif tool is None:
        await _try_later(call, "the tool is gone")
    elif is_late and tool.look is None:
        # Another one delivers it.
        await _postpone(call, MOST_PAUSE)
    elif is_late:
        await _ask(call, tool.look)
    else:
        await _tell_tool(call, tool.cancel)


async def _ask(call: ToolCall, ask: Look) -> None:
    try:
        async with asyncio.timeout(LOOK_SECONDS):
            found = await ask(call.handle or {}, call_context.of(call))
    except CallCancelledError as error:
        await _finish(call, CallAnswer(State.CANCELLED, str(error), "tool_cancelled"))
    except ToolException as error:
        await _finish(call, CallAnswer(State.FAILED, str(error), "tool_error"))
    except Exception as error:  # noqa: BLE001 - a tool may raise anything
        await _try_later(call, name_of(error))
    else:
        if isinstance(found, PendingResult):
            values = {"handle": found.handle, "error": found.blocked}
            await _postpone(call, found.seconds, **values)
        else:
            summary = await summaries.make(call.pk, found)
            await _finish(call, CallAnswer(State.DONE, found, summary=summary))


async def _tell_tool(call: ToolCall, cancel: Cancel | None) -> None:
    try:
        async with asyncio.timeout(LOOK_SECONDS):
            if cancel:
                await cancel(call.handle or {}, call_context.of(call))
    except Exception as error:  # noqa: BLE001 - a tool may raise anything
        await _try_later(call, name_of(error))
    else:
        await database_sync_to_async(_let_go)(call)


async def _try_later(call: ToolCall, why: str) -> None:
    logger.warning("no look call=%s tool=%s: %s", call.pk, call.name, why)
    if call.error == CALL_DELETED:
        # Its handle is kept for one try, not for as long as the tool is away.
        await database_sync_to_async(_let_go)(call)
        return
    waited = (call.now - call.created_at).total_seconds()
    await _postpone(call, max(LOOK_SECONDS, waited / FAILED_SHARE))


async def _finish(call: ToolCall, answer: CallAnswer) -> None:
    done = await database_sync_to_async(_end)(call.pk, answer)
    if done:
        await tell(done)


async def _postpone(call: ToolCall, seconds: float, **values: Any) -> None:
    changed = await database_sync_to_async(postpone)(call, seconds, **values)
    if changed and values.get("error", call.error) != call.error:
        told = await database_sync_to_async(answers.read)(call.pk)
        await events.publish_event(call.conversation_id, ToolEvent.from_call(told))


def postpone(call: ToolCall, seconds: float, **values: Any) -> int:
    """Look again so many seconds from now, at the latest at its deadline."""
    pause = timedelta(seconds=min(max(seconds, LEAST_PAUSE), MOST_PAUSE))
    later = ExpressionWrapper(Now() + pause, output_field=DateTimeField())
    at = Least(later, F("deadline_at")) if call.deadline_at else later
    return _held(call).update(next_look_at=at, owner="", **values)


def _let_go(call: ToolCall) -> None:
    """There is nothing more to look after."""
    _held(call).update(owner="", **OVER)


def _held(call: ToolCall) -> QuerySet[ToolCall]:
    return LOOK_LEASE.filter_held(Claim(call.pk, call.owner)).filter(state=call.state)


async def sweep() -> None:
    """Look at what is due, each in a task of its own."""
    for call in await database_sync_to_async(claim)():
        runner.spawn_task(look(call))


def release() -> None:
    """Let other processes continue the looks of this one, which ends."""
    mine = LOOK_LEASE.filter_held_here().filter(next_look_at__isnull=False)
    mine.update(next_look_at=Now(), owner="")


async def expire_questions() -> None:
    """End the questions for consent that were not answered in time."""
    for call in await database_sync_to_async(consent.expire)():
        await tell_answer(call)


async def tell_answer(call: ToolCall) -> None:
    """Let every page know of an answered question, and go on with the turn."""
    await events.publish_event(call.conversation_id, ToolEvent.from_call(call))
    if runner.is_sweeping():
        runner.start_turns(call.conversation_id)
