"""Spans of requests to models and calls of tools.

They follow the conventions for generative AI and hold no words of a conversation.
Written once the row is committed.
"""

import hashlib
import secrets
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.urls import reverse
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from memory.models import Conversation, ModelCall

from .span_export import export_span

Attributes = dict[str, str | int]
HAS_SUMMARIES = Q(refs__summaries__0__isnull=False)
# Columns of a request, and of what it belongs to.
READ = (
    *("purpose", "model", "provider", "sha256", "tokens_estimated", "tokens_input"),
    *("tokens_output", "tokens_cached", "first_token_ms", "total_ms", "attempts"),
    *("error", "created_at", "message__seq"),
    *("conversation__uuid", "conversation__temporary_until"),
)


def note_call(call: int, work: int | None, **_: object) -> None:
    """Export a request that has ended, of the turn or the trial `work`."""
    transaction.on_commit(partial(_export_call, call, work), robust=True)


def note_step(sender: object, signal: object, **step: Any) -> None:
    transaction.on_commit(partial(_export_step, **step), robust=True)


def _export_call(pk: int, work: int | None) -> None:
    rows = ModelCall.objects.select_related("conversation", "message")
    # What has words is not even read.
    rows = rows.only(*READ).annotate(is_compacted=HAS_SUMMARIES)
    call = rows.filter(pk=pk).first()
    if call is None:
        return
    export_span(
        f"chat {call.model}",
        context=_make_context(call.conversation, work, call.purpose),
        kind=SpanKind.CLIENT,
        attributes=_describe_model_call(call),
        status=_make_status(call.error),
        start_time=_to_nanoseconds(call.created_at),
        end_time=_to_nanoseconds(
            call.created_at + timedelta(milliseconds=call.total_ms)
        ),
    )


def _describe_model_call(call: ModelCall) -> Attributes:
    known = {
        **_describe_conversation(call.conversation, call.message and call.message.seq),
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": call.provider or "windowpane",
        "gen_ai.request.model": call.model,
        "gen_ai.usage.input_tokens": call.tokens_input,
        "gen_ai.usage.output_tokens": call.tokens_output,
        "gen_ai.usage.cache_read.input_tokens": call.tokens_cached,
        # The conventions have no False: it would say that the provider did not compact.
        "gen_ai.conversation.compacted": call.is_compacted or None,
        "error.type": call.error or None,
        "windowpane.request.purpose": call.purpose,
        "windowpane.request.sha256": call.sha256,
        "windowpane.request.tokens_estimated": call.tokens_estimated,
        "windowpane.request.attempts": call.attempts,
        "windowpane.request.first_token_ms": call.first_token_ms,
    }
    return {name: value for name, value in known.items() if value is not None}


def _export_step(
    *,
    conversation: Conversation,
    turn: int,
    seq: int,
    name: str,
    error: str,
    started_at: datetime,
    finished_at: datetime,
) -> None:
    known = {
        **_describe_conversation(conversation, seq),
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "error.type": error or None,
    }
    export_span(
        f"execute_tool {name}",
        context=_make_context(conversation, turn),
        kind=SpanKind.INTERNAL,
        attributes={key: value for key, value in known.items() if value is not None},
        status=_make_status(error),
        start_time=_to_nanoseconds(started_at),
        end_time=_to_nanoseconds(finished_at),
    )


def _describe_conversation(conversation: Conversation, seq: int | None) -> Attributes:
    """Return its id, and its address for its owner and staff.

    Empty for a temporary conversation.
    """
    if conversation.is_temporary:
        return {}
    page = reverse("conversation-detail", args=[conversation.uuid])
    site = next(iter(settings.SITE_ORIGINS), "")
    at = f"?at={seq}#message-{seq}" if seq else ""
    return {
        "gen_ai.conversation.id": str(conversation.uuid),
        "windowpane.request.address": f"{site}{page}{at}",
    }


def _make_context(
    conversation: Conversation, work: int | None, purpose: str = ""
) -> SpanContext:
    """Return a context: all requests and calls of a turn are one trace.

    That holds whichever process runs them.
    """
    if work is None:
        trace = secrets.randbits(128)
    else:
        kind = "trial" if purpose == ModelCall.Purpose.TRIAL else "turn"
        name = f"{kind} {conversation.uuid} {work}".encode()
        trace = int.from_bytes(hashlib.sha256(name).digest()[:16])
    flags = TraceFlags(TraceFlags.SAMPLED)
    return SpanContext(trace, secrets.randbits(64) | 1, False, flags)


def _make_status(error: str) -> Status:
    return Status(StatusCode.ERROR if error else StatusCode.UNSET)


def _to_nanoseconds(at: datetime) -> int:
    return round(at.timestamp() * 1_000_000) * 1_000
