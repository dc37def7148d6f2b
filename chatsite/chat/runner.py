"""Drives turns, and the folds that follow them, in detached tasks of the process.

The database decides who runs what (turns.py); this module only does the work. A task
never belongs to a socket, so a closed tab ends nothing.
"""

import asyncio
import contextvars
import logging
from collections.abc import Coroutine
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from langchain_core.messages import AIMessage, BaseMessage
from pydantic import BaseModel

from chatsite.llm import providers, streaming
from chatsite.llm.errors import LLMError
from memory import folding
from memory.engine.policy import CHUNK_TOKENS
from memory.models import Conversation

from . import attempt, events, outgoing, turns
from .models import Turn

logger = logging.getLogger(__name__)

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
    task.add_done_callback(_forget)


def _forget(task: asyncio.Task[None]) -> None:
    _tasks.discard(task)
    if not task.cancelled() and (error := task.exception()):
        logger.error("task crashed", exc_info=error)


async def _drive(conversation_id: int) -> None:
    while claim := await database_sync_to_async(turns.claim)(conversation_id):
        _held[claim.turn_id] = claim
        try:
            if ended := await attempt.run(claim):
                await _finish(*ended)
        except Exception:
            # The edge of the turn: whatever happened, it must not stay without an end.
            logger.exception("turn crashed turn=%s", claim.turn_id)
            await _finish(claim, turns.Result(Turn.State.FAILED, "", error="internal"))
        finally:
            _held.pop(claim.turn_id, None)
        start_folding(conversation_id)


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
    model = await database_sync_to_async(_model_of)(conversation_id)
    if model is None:
        return
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


def _model_of(conversation_id: int) -> str | None:
    """None when the conversation was deleted meanwhile."""
    conversation = Conversation.objects.filter(pk=conversation_id).first()
    return outgoing.model_of(conversation) if conversation else None


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
