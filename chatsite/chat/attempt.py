"""One attempt of a turn: context -> model -> frames -> result.

What it writes is fenced by its claim; when the turn is somebody else's, it just ends.
"""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings

from chatsite.llm import providers, streaming
from chatsite.llm.errors import LLMError
from memory import context

from . import events, outgoing, turns
from .models import Turn

FRAME_SECONDS = 0.05
CHECKPOINT_SECONDS = 1.0

State = Turn.State


async def run(claim: turns.Claim) -> tuple[turns.Claim, turns.Result] | None:
    """How the attempt ended, under the claim of its last request; None: turn lost.

    A context that the provider finds too long is sent once more, at half its size;
    the fold that follows the turn then makes room for good.
    """
    request = await database_sync_to_async(_prepare)(claim)
    result = await _ask(claim, request)
    if result and result.error == "context_length" and not result.text:
        limit = request.built.tokens // 2
        smaller = await database_sync_to_async(_prepare)(claim, limit)
        if smaller.built.tokens < request.built.tokens:
            await database_sync_to_async(turns.give_up)(request.claim, result)
            request, result = smaller, await _ask(claim, smaller)
    return (request.claim, result) if result else None


@dataclass(slots=True)
class _Request:
    claim: turns.Claim
    model: str
    built: context.Built
    options: dict[str, Any]


def _prepare(claim: turns.Claim, limit: int | None = None) -> _Request:
    turn = Turn.objects.select_related("conversation", "user_message").get(
        pk=claim.turn_id
    )
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
    begun = await database_sync_to_async(turns.begin)(
        claim, request.built, request.model
    )
    if begun is None:
        return None
    request.claim = begun
    await events.publish(
        claim.conversation_id, events.State(claim.turn_id, State.RUNNING)
    )
    messages = request.built.context.messages
    stream = streaming.ReplyStream(request.model, messages, bind=request.options)
    async with events.stop_hints(claim.turn_id) as stop:
        return await _Attempt(begun, stream, stop).run()


@dataclass(slots=True)
class _Attempt:
    """Reads the stream into a text, sends it in frames, saves it once a second."""

    claim: turns.Claim
    stream: streaming.ReplyStream
    stop: asyncio.Event
    text: str = ""
    base: int = 0  # characters that are saved
    sent: int = 0  # characters that were in a frame
    saved_at: float = field(default_factory=monotonic)

    async def run(self) -> turns.Result | None:
        """The result, or None when the turn is somebody else's now."""
        async with aclosing(self.stream):
            reader = asyncio.create_task(self._read())
            try:
                hold = await self._pump(reader)
            finally:
                reader.cancel()
                await asyncio.gather(reader, return_exceptions=True)
        if hold is turns.Hold.LOST:
            return None
        if hold is turns.Hold.CANCELLED:
            return self._result(State.STOPPED)
        return self._outcome(reader)

    async def _read(self) -> None:
        async for piece in self.stream:
            self.text += piece

    async def _pump(self, reader: asyncio.Task[None]) -> turns.Hold:
        stopped = asyncio.create_task(self.stop.wait())
        try:
            while not reader.done():
                if stopped.done():
                    return turns.Hold.CANCELLED
                await asyncio.wait(
                    {reader, stopped},
                    timeout=FRAME_SECONDS,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                await self._send_frame()
                hold = await self._checkpoint()
                if hold is not turns.Hold.KEPT:
                    return hold
        finally:
            stopped.cancel()
        return turns.Hold.KEPT

    async def _send_frame(self) -> None:
        if len(self.text) == self.sent:
            return
        self.sent = len(self.text)
        await events.publish(
            self.claim.conversation_id,
            events.Frame(
                self.claim.turn_id,
                self.claim.attempt,
                self.base,
                self.text[self.base :],
            ),
        )

    async def _checkpoint(self) -> turns.Hold:
        if monotonic() - self.saved_at < CHECKPOINT_SECONDS:
            return turns.Hold.KEPT
        # Only what was in a frame: `base` is never beyond what the pages know.
        text = self.text[: self.sent]
        hold = await database_sync_to_async(turns.checkpoint)(self.claim, text)
        self.base, self.saved_at = len(text), monotonic()
        return hold

    def _outcome(self, reader: asyncio.Task[None]) -> turns.Result:
        error = reader.exception()
        if isinstance(error, LLMError):
            return self._result(State.FAILED, error.code)
        if error:
            raise error
        reason = self.stream.finish_reason
        if reason == "length":
            return self._result(State.TRUNCATED, "length")
        if reason is None and settings.FINISH_REASON_REQUIRED:
            return self._result(State.TRUNCATED, "no_finish_reason")
        return self._result(State.DONE)

    def _result(self, state: str, error: str = "") -> turns.Result:
        usage = self.stream.usage
        return turns.Result(
            state,
            self.text,
            error=error,
            tokens_input=usage.input if usage else None,
            tokens_cached=usage.cached if usage else None,
            tokens_output=usage.output if usage else None,
            first_token_ms=self.stream.first_token_ms,
            total_ms=self.stream.total_ms,
            attempts=self.stream.attempts,
        )
