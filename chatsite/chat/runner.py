"""Drives turns: context -> model -> frames -> reply, in detached tasks of the process.

The database decides who runs what (turns.py); this module only does the work. A task
never belongs to a socket, so a closed tab ends nothing.
"""

import asyncio
import contextvars
import logging
from collections.abc import Coroutine
from contextlib import aclosing
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from langchain_core.messages import AIMessage, BaseMessage
from pydantic import BaseModel

from chatsite.llm import providers, streaming
from chatsite.llm.errors import LLMError
from memory import context, folding
from memory.engine.policy import CHUNK_TOKENS
from memory.models import Conversation

from . import events, outgoing, turns
from .models import Turn

logger = logging.getLogger(__name__)

FRAME_SECONDS = 0.05
CHECKPOINT_SECONDS = 1.0

State = Turn.State

# Strong references: the event loop keeps only weak ones to its tasks.
_tasks: set[asyncio.Task[None]] = set()
_held: dict[int, turns.Claim] = {}


def start(conversation_id: int) -> None:
    """Work off the conversation's turns in a task of its own."""
    _spawn(_drive(conversation_id))


def start_folding(conversation_id: int, *, force: bool = False) -> None:
    _spawn(_fold(conversation_id, force))


def _spawn(work: Coroutine[Any, Any, None]) -> None:
    # An empty context: inherited from an HTTP request, a task would use that
    # request's thread for the database, which is gone when the response is out.
    loop = asyncio.get_running_loop()
    task = loop.create_task(work, context=contextvars.Context())
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


async def _drive(conversation_id: int) -> None:
    while claim := await database_sync_to_async(turns.claim)(conversation_id):
        _held[claim.turn_id] = claim
        try:
            await _run(claim)
        except Exception:
            # The edge of the turn: whatever happened, it must not stay without an end.
            logger.exception("turn crashed turn=%s", claim.turn_id)
            await _finish(claim, turns.Result(State.FAILED, "", error="internal"))
        finally:
            _held.pop(claim.turn_id, None)
        start_folding(conversation_id)


async def _run(claim: turns.Claim) -> None:
    """One attempt of a turn, from its context to its end.

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
    if result is not None:
        await _finish(request.claim, result)


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


async def _finish(claim: turns.Claim, result: turns.Result) -> None:
    turn = await database_sync_to_async(turns.finish)(claim, result)
    if turn is None:
        logger.info("turn lost turn=%s attempt=%s", claim.turn_id, claim.attempt)
        return
    logger.info(
        "turn ended turn=%s conversation=%s state=%s error=%s",
        turn.pk,
        claim.conversation_id,
        turn.state,
        turn.error or "-",
    )
    await events.publish(claim.conversation_id, events.End.of(turn))


async def _fold(conversation_id: int, force: bool) -> None:
    """Fold what the policy asks for, and tell the pages when the view has changed."""
    conversation = await Conversation.objects.aget(pk=conversation_id)
    model = outgoing.model_of(conversation)
    name = providers.summary_model(model)
    outcome = await folding.fold(
        conversation_id,
        _summariser(name),
        open_from=turns.open_from,
        context_window=providers.context_window(model),
        force=force,
    )
    if outcome.state not in ("nothing", "busy"):
        await events.publish(conversation_id, events.Memory.of(outcome))


def _summariser(name: str) -> folding.Summariser:
    async def invoke(
        messages: list[BaseMessage], *, schema: type[BaseModel] | None = None
    ) -> AIMessage:
        try:
            return await streaming.complete(name, messages, schema=schema)
        except LLMError as error:
            raise folding.InvokeError(error.code) from None

    # Half of a small window is left for the summary so far, and for what comes out.
    chunk_tokens = min(CHUNK_TOKENS, providers.context_window(name) // 2)
    return folding.Summariser(name, invoke, chunk_tokens)


async def sweep() -> None:
    """Start every turn and every fold that is due and that nobody works on."""
    for conversation_id in await database_sync_to_async(turns.due)():
        start(conversation_id)
    for conversation_id in await database_sync_to_async(folding.due)():
        start_folding(conversation_id)


async def _sweep_forever() -> None:
    while True:
        try:
            await sweep()
        except Exception:
            # A database that is away for a moment must not end the sweeping.
            logger.exception("sweep failed")
        await asyncio.sleep(settings.TURN_SWEEP_SECONDS)


_sweepers: dict[asyncio.AbstractEventLoop, asyncio.Task[None]] = {}


def ensure_sweeping() -> None:
    """Start this process's sweeper, once; call it from inside the event loop."""
    loop = asyncio.get_running_loop()
    if loop not in _sweepers:
        _sweepers[loop] = loop.create_task(
            _sweep_forever(), context=contextvars.Context()
        )


async def hand_back() -> None:
    """Release the turns that run here, so that another process takes over at once."""
    claims = list(_held.values())
    for task in list(_tasks):
        task.cancel()
    await asyncio.gather(*_tasks, return_exceptions=True)
    for claim in claims:
        await database_sync_to_async(turns.release)(claim)
