"""Titles made by the model after the first exchange, beside everything else.

A failure changes nothing, and no title that a user set is ever replaced.
"""

import logging
from dataclasses import dataclass
from time import monotonic
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from langchain_core.messages import AIMessage, BaseMessage

from chatsite.llm import dialects, naming, providers, streaming
from chatsite.llm.errors import LLMError
from chatsite.protocol import events
from memory import transcript
from memory.compaction.compactor import RefusedError
from memory.engine.compose import digest_wire, to_wire
from memory.engine.replies import read_whole_text
from memory.engine.tokens import count_tokens
from memory.models import Conversation, ModelCall
from memory.sql import prepared_rows

from . import limits, requests, spending
from .models import Turn

logger = logging.getLogger(__name__)

TITLE_SECONDS = 20.0
MAX_TRIES = 2


@dataclass(slots=True)
class _Job:
    call: ModelCall
    messages: list[BaseMessage]
    dialect: dialects.Dialect


async def name_conversation(conversation_id: int) -> None:
    """Name the conversation, if it is time for that, and notify every tab."""
    untitled = await database_sync_to_async(_find_untitled)(conversation_id)
    if untitled is None:
        return
    model = providers.summary_model(requests.model_of(untitled))
    try:
        async with spending.hold_place(untitled.owner_id, model):
            title = await _ask_for_title(conversation_id)
    except RefusedError:
        return
    if title:
        await events.publish_event(conversation_id, events.Title(title))


async def _ask_for_title(conversation_id: int) -> str:
    """Send the request and close its books; "" where nothing came of it."""
    dialect = None
    while job := await database_sync_to_async(_prepare_request)(
        conversation_id, dialect
    ):
        started, reply, dialect = monotonic(), AIMessage(""), None
        try:
            reply = await streaming.fetch_reply(
                job.call.model, job.messages, total=TITLE_SECONDS, dialect=job.dialect
            )
        except LLMError as error:
            code, dialect = error.code, error.instead
            logger.info("no title conversation=%s error=%s", conversation_id, code)
            job.call.error = code
        job.call.total_ms = int((monotonic() - started) * 1000)
        title = await database_sync_to_async(_finish_title)(job, reply)
        # Refused in this form: the record of another request is another one.
        if title or dialect is None:
            return title
    return ""


def may_be_due(conversation: Conversation) -> bool:
    """Return whether to ask the database, as far as the row itself shows."""
    is_automatic = conversation.title_set_by == Conversation.TitleSource.AUTO
    return settings.TITLES_ENABLED and is_automatic


def _find_untitled(conversation_id: int) -> Conversation | None:
    """Return the conversation, if it is time to name it."""
    if not settings.TITLES_ENABLED:
        return None
    found = _select_untitled(conversation=conversation_id)
    return found[0] if found else None


@prepared_rows()
def _select_untitled(conversation: Any) -> QuerySet[Conversation]:
    tries = ModelCall.objects.filter(
        conversation=OuterRef("pk"), purpose=ModelCall.Purpose.TITLE
    )
    turns = Turn.objects.filter(conversation=OuterRef("pk"))
    return Conversation.objects.filter(
        ~Exists(tries.filter(error="")),
        ~Exists(tries.order_by("pk")[MAX_TRIES - 1 :]),
        ~Exists(turns.order_by("pk")[transcript.TITLE_TURNS :]),
        pk=conversation,
        title_set_by=Conversation.TitleSource.AUTO,
        deleted_at=None,
    )


@transaction.atomic
def _prepare_request(
    conversation_id: int, dialect: dialects.Dialect | None = None
) -> _Job | None:
    """Record the request before it is sent, so that no other process asks for it."""
    # Locked first: only then the requests of other processes are seen.
    rows = Conversation.objects.select_for_update().filter(pk=conversation_id)
    rows.order_by().values_list("pk").first()
    conversation = _find_untitled(conversation_id)
    if conversation is None:
        return None
    done = conversation.turns.filter(state=Turn.State.DONE, reply__isnull=False)
    turn = done.select_related("user_message", "reply").order_by("pk").first()
    if turn is None:
        return None
    model = providers.summary_model(requests.model_of(conversation))
    dialect = dialect or dialects.find_dialect(model)
    shape = requests.shape_of(model, dialect)
    words = transcript.words_for_title(turn.user_message)
    messages = shape.apply_to(naming.title_request(words, turn.reply.text))
    call = ModelCall.objects.create(
        conversation=conversation,
        purpose=ModelCall.Purpose.TITLE,
        refs={"messages": [turn.user_message.seq, turn.reply.seq], **shape.to_refs()},
        sha256=digest_wire(to_wire(messages, model=model)),
        model=model,
        tokens_estimated=count_tokens(messages),
    )
    return _Job(call, messages, dialect)


@transaction.atomic
def _finish_title(job: _Job, reply: AIMessage) -> str:
    """Close the books and set the title; "" where nothing came of it."""
    usage = reply.usage_metadata or {}
    meta = reply.response_metadata
    title = naming.read_title(read_whole_text(reply))
    # LangChain has no word for "unknown": 0 is none.
    job.call.tokens_input = usage.get("input_tokens") or None
    job.call.tokens_output = usage.get("output_tokens") or None
    job.call.attempts = meta.get("attempts", 1)
    job.call.error = job.call.error or ("" if title else "no_title")
    if not _record_cost(job.call):
        return ""
    limits.charge_call(job.call, str(reply.text))
    rows = Conversation.objects.filter(
        pk=job.call.conversation_id, title_set_by=Conversation.TitleSource.AUTO
    )
    conversation = rows.select_for_update().first()
    if not title or conversation is None:
        return ""
    seqs = job.call.refs["messages"]
    # A message that the title was made from may have been deleted meanwhile.
    if conversation.messages.filter(seq__in=seqs).exclude(deleted_at=None).exists():
        return ""
    rows.update(title=title, title_seqs=seqs)
    return title


def _record_cost(call: ModelCall) -> bool:
    """Write down what the request cost; False: its conversation is gone meanwhile."""
    names = ("tokens_input", "tokens_output", "attempts", "error", "total_ms")
    values = {name: getattr(call, name) for name in names}
    return bool(ModelCall.objects.filter(pk=call.pk).update(**values))
