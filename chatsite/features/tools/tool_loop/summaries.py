"""Summaries of long results of tools, if the site wants them instead of beginnings.

The model that summarises writes them, and they are billed as a summary. If there is
none, the result is cut.
"""

import asyncio
import logging
from dataclasses import dataclass
from time import monotonic
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from django.db import transaction
from langchain_core.messages import AIMessage, BaseMessage

from chatsite import metrics
from chatsite.features.tools import registry, results
from chatsite.features.tools.models import ToolCall
from chatsite.llm import providers
from chatsite.llm.errors import LLMError
from chatsite.turns import limits, requests, spending
from memory.compaction.compactor import RefusedError
from memory.database import TRANSIENT_DB_ERRORS
from memory.engine.compose import Shape, digest_wire, to_wire
from memory.engine.tokens import count_tokens
from memory.models import ModelCall

from .result_summary import read_summary, summary_request

logger = logging.getLogger(__name__)

# Of one summary, with the wait for its turn: the model, or who looks for a late result,
# waits meanwhile.
MOST_SECONDS = 30.0
# The tokens that are read of a result, from its beginning.
READ_TOKENS = 20_000


@dataclass(frozen=True, slots=True)
class _SummaryRequest:
    call: ToolCall
    model: str
    messages: list[BaseMessage]
    max_tokens: int
    chars: int


async def make(pk: int, content: Any) -> results.ResultSummary | None:
    """Return the summary of a call's result, for results.refine().

    Return None if the result is short enough or is to be cut.
    """
    if settings.TOOL_RESULTS != "summarise":
        return None
    try:
        async with asyncio.timeout(MOST_SECONDS):
            asked = await database_sync_to_async(_prepare)(pk, content)
            if asked is None:
                return None
            async with spending.hold_place(
                asked.call.conversation.owner_id, asked.model
            ):
                text = await _ask(asked)
    except (TimeoutError, RefusedError, *TRANSIENT_DB_ERRORS) as error:
        logger.info("no summary call=%s: %s", pk, type(error).__name__)
        return None
    except Exception:
        # The result is there; it must not be lost, or asked for and paid again.
        logger.exception("no summary call=%s", pk)
        return None
    return results.ResultSummary(text, asked.chars) if text else None


def _prepare(pk: int, content: Any) -> _SummaryRequest | None:
    rows = ToolCall.objects.select_related("conversation", "turn__user_message")
    call = rows.select_related("request").get(pk=pk)
    tool = registry.known().get(call.name)
    whole = results.to_whole(content)
    model = providers.summary_model(requests.model_of(call.conversation))
    room = results.room_for_summary(tool)
    # The demo model would make another cut of it.
    if results.fits(whole, tool) or room <= 0 or providers.is_demo(model):
        return None
    read = min(READ_TOKENS, providers.context_window(model) // 2)
    start = results.begin(whole, read)
    messages = summary_request(
        question=call.turn.user_message.typed,
        name=call.name,
        arguments=call.arguments,
        result=start,
        max_tokens=room,
    )
    return _SummaryRequest(call, model, messages, room, len(start))


async def _ask(asked: _SummaryRequest) -> str:
    """Send the request and close its books; "" where nothing came of it."""
    started = monotonic()
    # The outcome if the request is cancelled meanwhile.
    reply, code, shape = None, "cancelled", requests.shape_of(asked.model)
    try:
        reply = await requests.complete_request(asked.model, asked.messages)
        code, shape = "", reply.response_metadata["shape"]
    except LLMError as error:
        code, shape = error.code, requests.shape_of(asked.model, error.dialect)
    finally:
        ms = int((monotonic() - started) * 1000)
        await database_sync_to_async(_record)(asked, reply, code, shape, ms)
    return read_summary(reply, asked.max_tokens) if reply else ""


@transaction.atomic
def _record(
    asked: _SummaryRequest, reply: AIMessage | None, code: str, shape: Shape, ms: int
) -> None:
    metrics.note_request("result", code)
    usage = (reply.usage_metadata if reply else None) or {}
    seq = asked.call.request.seq
    call = ModelCall.objects.create(
        conversation=asked.call.conversation,
        purpose=ModelCall.Purpose.RESULT,
        refs={"messages": [seq, seq], "call": asked.call.pk, **shape.to_refs()},
        sha256=digest_wire(to_wire(shape.apply_to(asked.messages), model=asked.model)),
        model=asked.model,
        tokens_estimated=count_tokens(asked.messages),
        # LangChain has no word for "unknown": 0 is none.
        tokens_input=usage.get("input_tokens") or None,
        tokens_output=usage.get("output_tokens") or None,
        total_ms=ms,
        attempts=reply.response_metadata["attempts"] if reply else 1,
        error=code,
    )
    limits.charge_call(call, str(reply.text) if reply else "")
