"""One attempt of a turn: context -> model -> frames -> result.

What it writes is fenced by its claim; when the turn is somebody else's, it just ends.
"""

from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings

from chatsite.llm import providers, streaming
from chatsite.llm.errors import LLMError
from memory import context

from . import events, outgoing, turns
from .database import insist
from .models import Turn
from .relay import Relay

State = Turn.State


async def run(claim: turns.Claim) -> tuple[turns.Claim, turns.Result] | None:
    """How the attempt ended, under the claim of its last request; None: turn lost.

    A context that the provider finds too long is sent once more, at half its size;
    the fold that follows the turn then makes room for good. Raises an error of the
    database when that stays away for longer than the lease.
    """
    request = await insist(_prepare, claim, until=claim.lease_end)
    if isinstance(request, turns.Result):
        return claim, request
    if request.built.tokens > providers.context_window(request.model):
        # Some providers would cut it off without a word.
        return claim, turns.Result(State.FAILED, "", error="context_length")
    result = await _ask(claim, request)
    if result and result.error == "context_length" and not result.text:
        claim = request.claim
        limit = request.built.tokens // 2
        smaller = await insist(_prepare, claim, limit, until=claim.lease_end)
        if isinstance(smaller, turns.Result):
            return claim, replace(result, state=smaller.state, error=smaller.error)
        if smaller.built.tokens < request.built.tokens:
            await insist(turns.give_up, claim, result, until=claim.lease_end)
            request, result = smaller, await _ask(claim, smaller)
    return (request.claim, result) if result else None


@dataclass(slots=True)
class _Request:
    claim: turns.Claim
    model: str
    built: context.Built
    options: dict[str, Any]


def _prepare(claim: turns.Claim, limit: int | None = None) -> "_Request | turns.Result":
    """What to send; a result where a person wants no reply any more, or has deleted
    the message that it would answer."""
    turn = Turn.objects.select_related("conversation", "user_message").get(
        pk=claim.turn_id
    )
    if turn.user_message.deleted_at:
        return turns.Result(State.STOPPED, "", error=turns.MESSAGE_DELETED)
    if turn.cancel_requested_at:
        return turns.Result(State.STOPPED, "")
    conversation = turn.conversation
    model = outgoing.model_of(conversation)
    built = context.build(
        conversation,
        newest=turn.user_message,
        model=model,
        limit=limit or outgoing.limit_of(model),
    )
    options = providers.cache_options(model, str(conversation.uuid))
    return _Request(claim, model, built, options)


async def _ask(claim: turns.Claim, request: _Request) -> turns.Result | None:
    """Send the request and pass on the reply. None: the turn is somebody else's."""
    begun = await insist(
        turns.begin, claim, request.built, request.model, until=claim.lease_end
    )
    if begun is None:
        return None
    request.claim = begun
    running = events.State(claim.turn_id, State.RUNNING)
    await events.publish(claim.conversation_id, running)
    messages = request.built.context.messages
    stream = streaming.ReplyStream(request.model, messages, bind=request.options)
    async with events.stop_hints(claim.turn_id) as stop:
        relay = Relay(begun, stream, stop)
        error = await relay.run()
    if relay.hold is turns.Hold.LOST:
        return None
    if relay.hold is turns.Hold.CANCELLED:
        return _result(relay, State.STOPPED)
    return _outcome(relay, error)


def _outcome(relay: Relay, error: BaseException | None) -> turns.Result:
    if isinstance(error, LLMError):
        return _result(relay, State.FAILED, error.code)
    if error:
        raise error
    reason = relay.stream.finish_reason
    if reason == "length":
        return _result(relay, State.TRUNCATED, "length")
    if reason is None and settings.FINISH_REASON_REQUIRED:
        return _result(relay, State.TRUNCATED, "no_finish_reason")
    return _result(relay, State.DONE)


def _result(relay: Relay, state: str, error: str = "") -> turns.Result:
    stream, usage = relay.stream, relay.stream.usage
    return turns.Result(
        state,
        relay.text,
        error=error,
        tokens_input=usage.input if usage else None,
        tokens_cached=usage.cached if usage else None,
        tokens_output=usage.output if usage else None,
        first_token_ms=stream.first_token_ms,
        total_ms=stream.total_ms,
        attempts=stream.attempts,
    )
