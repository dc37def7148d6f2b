"""One attempt of a turn: context -> model -> frames -> result.

Its writes are fenced by its claim; once another process has the turn, it just ends.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import Any

from django.conf import settings

from chatsite.features.tools.tool_loop.steps import runs_in_steps
from chatsite.llm import dialects, providers, streaming
from chatsite.llm.dialects import Tools
from chatsite.llm.errors import LLMError
from chatsite.protocol import events
from memory import context
from memory.database import retry
from memory.engine import replies
from memory.engine.blank import is_blank

from . import commands, lifecycle, limits, model_access, requests, variations
from .checkpoints import CHECKPOINT_SECONDS
from .models import Turn
from .reply_streamer import ReplyStreamer

State = Turn.State


# Starts a compaction of the messages that requests of a conversation leave out, into so
# many tokens, or what the model takes; None: this process ends.
MakeRoom = Callable[[int, int | None], asyncio.Task[Any] | None]


async def answer_turn(
    claim: lifecycle.TurnClaim,
    request: "Request | lifecycle.TurnResult",
    make_room: MakeRoom,
) -> tuple[lifecycle.TurnClaim, lifecycle.TurnResult] | None:
    """Send the prepared request; return the last claim and the result, None: turn lost.

    A context that the provider finds too long is sent once more, at half its size; the
    compaction that follows the turn then makes room for good. One that it refuses for
    its form is sent again in another form. Each request has a record of its own.
    """
    request = await _compact_first(request, make_room)
    if request is None:
        return None
    if isinstance(request, lifecycle.TurnResult):
        return claim, request
    claim = request.claim
    if request.is_too_long:
        return claim, lifecycle.TurnResult(State.FAILED, "", error="context_length")
    while answer := await _send_request(request):
        following = await _prepare_other(request, answer, make_room)
        if following is None:
            return request.claim, answer.result
        claim = request.claim
        if isinstance(following, lifecycle.TurnResult):
            ended = replace(answer.result, state=following.state, error=following.error)
            return claim, ended
        await retry(lifecycle.give_up, claim, answer.result, until=claim.lease_end)
        request = following
    return None


@dataclass(slots=True)
class Request:
    claim: lifecycle.TurnClaim
    model: str
    built: context.RequestContext
    dialect: dialects.Dialect
    tools: Tools | None = None
    # A ceiling in tokens, once the provider has found the context too long.
    limit: int | None = None
    # What lifecycle.begin() said, where it was recorded as it was prepared.
    begun: lifecycle.TurnClaim | lifecycle.LeaseStatus | None = None

    @property
    def is_too_long(self) -> bool:
        """The context exceeds the window; some providers would silently cut it."""
        return self.built.tokens > providers.context_window(self.model)

    @property
    def needs_room(self) -> bool:
        """The request leaves out messages that could be summarised first."""
        return (
            bool(self.built.refs["left_out"]) and settings.COMPACTION_WAIT_SECONDS > 0
        )


@dataclass(frozen=True, slots=True)
class _Answer:
    result: lifecycle.TurnResult
    # The dialect in which a refused request may succeed.
    instead: dialects.Dialect | None = None


def prepare_attempt(
    claim: lifecycle.TurnClaim,
    limit: int | None = None,
    dialect: dialects.Dialect | None = None,
    tools: Tools | None = None,
) -> Request | lifecycle.TurnResult | Turn:
    """Return the request to send, a result that refuses it, or a turn with steps.

    A result is returned where the user has stopped the turn, has deleted the message
    that it would answer, or may not spend any more; the turn itself, where it runs in
    steps and no `tools` were given.
    """
    turn = claim.turn
    if turn is None:
        rows = Turn.objects.select_related("conversation", "user_message")
        turn = rows.get(pk=claim.row_id)
        if refused := _refuse_attempt(turn):
            return refused
    conversation = turn.conversation
    if tools is None and runs_in_steps(turn):
        return turn
    varied = variations.take_next(turn)
    model = (varied and varied.model) or requests.model_of(conversation)
    if refusal := model_access.find_model_refusal(conversation.owner_id, model):
        return lifecycle.TurnResult(State.FAILED, "", error=refusal)
    dialect = dialect or dialects.find_dialect(model)
    built = requests.compose_request(
        conversation,
        turn.user_message,
        model,
        varied=varied,
        tools=tools or Tools(),
        steps=() if tools is None else context.read_steps(turn.user_message),
        limit=limit,
        dialect=dialect,
    )
    return Request(claim, model, built, dialect, tools, limit)


def begin_attempt(
    *arguments: Any, tools: Tools | None = None, waits: bool = True
) -> Request | lifecycle.TurnResult | Turn:
    """Prepare the attempt, and record its request where it can be sent at once.

    Both are one visit to the database thread. `waits`: not recorded before what it
    would leave out is summarised.
    """
    request = prepare_attempt(*arguments, tools=tools)
    if not isinstance(request, Request) or request.is_too_long:
        return request
    if not (waits and request.needs_room):
        request.begun = lifecycle.begin(request.claim, request.built, request.model)
    return request


def _refuse_attempt(turn: Turn) -> lifecycle.TurnResult | None:
    if turn.user_message.deleted_at:
        return lifecycle.TurnResult(State.STOPPED, "", error=commands.MESSAGE_DELETED)
    if turn.cancel_requested_at:
        return lifecycle.TurnResult(State.STOPPED, "")
    if limits.is_used_up(turn):
        return lifecycle.TurnResult(State.FAILED, "", error="quota")
    return None


async def _compact_first(
    request: Request | lifecycle.TurnResult, make_room: MakeRoom
) -> Request | lifecycle.TurnResult | None:
    """Return the request, after one compaction of the messages that it would leave out.

    Only messages that no summary covers are compacted: tried once, and only for a
    while. None: turn lost.
    """
    if isinstance(request, lifecycle.TurnResult) or not request.needs_room:
        return request
    claim, limit = replace(request.claim, turn=None), request.limit
    held = await wait_for_room(make_room(claim.conversation_id, limit), claim)
    if held is None:
        return None
    begin = partial(begin_attempt, tools=request.tools, waits=False)
    return await retry(begin, held, limit, request.dialect, until=held.lease_end)


async def wait_for_room(
    compaction: asyncio.Task[Any] | None, claim: lifecycle.TurnClaim
) -> lifecycle.TurnClaim | None:
    """Return the claim, renewed while the compaction runs. None: turn lost.

    A compaction that takes too long goes on alone: it is paid, and serves the next
    request.
    """
    until = monotonic() + settings.COMPACTION_WAIT_SECONDS
    while compaction and not compaction.done() and (left := until - monotonic()) > 0:
        await asyncio.wait([compaction], timeout=min(left, CHECKPOINT_SECONDS))
        started = monotonic()
        hold = await retry(lifecycle.checkpoint, claim, "", until=claim.lease_end)
        if hold is lifecycle.LeaseStatus.LOST:
            return None
        if hold is lifecycle.LeaseStatus.CANCELLED:
            break  # _prepare() sees it, too
        claim = replace(claim, renewed_at=started)
    return claim


async def _prepare_other(
    request: Request, answer: _Answer, make_room: MakeRoom
) -> Request | lifecycle.TurnResult | None:
    """Return the request to send after a failed one, or the result that forbids it.

    None where the end of the failed request is the last.
    """
    claim, limit, dialect = request.claim, request.limit, request.dialect
    if answer.instead:
        dialect = answer.instead
    elif (
        answer.result.error == "context_length" and not answer.result.text and not limit
    ):
        limit = request.built.tokens // 2
    else:
        return None
    arguments = (limit, dialect, request.tools)
    other = await retry(prepare_attempt, claim, *arguments, until=claim.lease_end)
    if isinstance(other, lifecycle.TurnResult) or answer.instead:
        return other
    if other.built.tokens >= request.built.tokens:
        return None
    return await _compact_first(other, make_room)


async def _send_request(request: Request) -> _Answer | None:
    """Send the request and pass on the reply. None: the turn was lost."""
    claim = request.claim
    begun = request.begun or await retry(
        lifecycle.begin, claim, request.built, request.model, until=claim.lease_end
    )
    if begun is lifecycle.LeaseStatus.LOST:
        return None
    if begun is lifecycle.LeaseStatus.CANCELLED:
        return _Answer(lifecycle.TurnResult(State.STOPPED, ""))
    request.claim = begun
    # The sender of a message that is answered at once has notified the pages already.
    if claim.turn is None:
        running = events.State(claim.row_id, State.RUNNING)
        await events.publish_event(claim.conversation_id, running)
    stream = streaming.ReplyStream(
        request.model,
        request.built.messages,
        bind=request.built.options,
        dialect=request.dialect,
    )
    async with events.stop_hints(claim.row_id) as stop:
        relay = ReplyStreamer(begun, stream, stop)
        error = await relay.run()
    if relay.hold is lifecycle.LeaseStatus.LOST:
        return None
    if relay.hold is lifecycle.LeaseStatus.CANCELLED:
        return _Answer(make_result(relay, State.STOPPED))
    instead = error.instead if isinstance(error, LLMError) else None
    return _Answer(read_outcome(relay, error), instead)


def read_outcome(
    relay: ReplyStreamer, error: BaseException | None
) -> lifecycle.TurnResult:
    """Return the result of a stream that was read to its end.

    Raises an error that is no LLMError.
    """
    if isinstance(error, LLMError):
        code = f"{error.code}:{error.about}" if error.about else error.code
        return make_result(relay, State.FAILED, code)
    if error:
        raise error
    why = replies.why_cut_off(relay.stream.finish_reason)
    if why == "content_filter":
        return make_result(relay, State.FAILED, why)
    if why:
        return make_result(relay, State.TRUNCATED, why)
    if is_blank(relay.text) and not relay.stream.calls:
        code = "only_reasoning" if relay.reasoning else "bad_response"
        return make_result(relay, State.FAILED, code)
    return make_result(relay, State.DONE)


def make_result(
    relay: ReplyStreamer, state: str, error: str = ""
) -> lifecycle.TurnResult:
    stream, usage = relay.stream, relay.stream.usage
    return lifecycle.TurnResult(
        state,
        relay.text,
        reasoning=relay.reasoning,
        error=error,
        tokens_input=usage.input if usage else None,
        tokens_cached=usage.cached if usage else None,
        tokens_output=usage.output if usage else None,
        kept=(usage.kept, usage.kept_long) if usage and usage.kept else (),
        first_token_ms=stream.first_token_ms,
        total_ms=stream.total_ms,
        attempts=stream.attempts,
        body_sha256=stream.body_sha256,
        body_fields=stream.body_fields,
        calls=stream.calls,
        extras=stream.extras,
    )
