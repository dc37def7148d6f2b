"""Compaction of a whole history by the provider, on a client's request.

It is passed on, charged, and recognised from then on as the same conversation. The
result is no message, but the provider's own summary.
"""

from collections.abc import Mapping
from contextlib import aclosing

from django.db import transaction

from chatsite.fair_queue import for_drawing
from chatsite.llm.demo.extractive import summarize_extractively
from chatsite.llm.event_stream import MAX_JSON_BYTES
from chatsite.turns import limits
from memory.models import Conversation

from . import keys
from .apis.errors import ApiError
from .apis.openai_responses import make_compacted
from .apis.reply_reader import ReplyReader
from .identity.canonical import UnreadableHistoryError
from .identity.history import GENESIS, go_on_from, read_history, read_reply
from .identity.search import find_reach
from .models import ApiKey, ClientConversation
from .provider_reports.summaries import keep_forms, keep_summaries
from .relay.provider_answer import (
    CutError,
    ProviderAnswer,
    fetch_answer,
    make_json_answer,
    yield_once,
)
from .store.owner_history import OwnerHistory, find_previous
from .store.parsed_request import ParsedRequest
from .store.request_store import lock_owner

DEMO_TOKENS = 400


@transaction.atomic
def admit_compaction(key: ApiKey, request: ParsedRequest) -> None:
    """Check the limits and charge the request before it is sent.

    Its client may hang up. Raise CommandError, and ApiError for a reply of another
    user.
    """
    find_previous(OwnerHistory(key.owner_id), request)
    keys.check_tokens(key)
    limits.admit_summary(key.owner_id)
    charge_compaction(key, limits.ModelUse(request.model, request.tokens))


def charge_compaction(key: ApiKey, used: limits.ModelUse) -> None:
    limits.charge_use(key.owner_id, used)
    keys.charge_api_key(key.pk, used.read + used.written)


async def fetch_compacted(
    request: ParsedRequest, headers: Mapping[str, str]
) -> tuple[ProviderAnswer, ReplyReader]:
    """Return the provider's whole answer and its parsed reply.

    Raise ApiError.
    """
    if request.api.find_upstream(request.model) is None:
        answer = make_json_answer(await for_drawing(_compact_as_demo)(request))
    else:
        answer = await fetch_answer(request, headers)
    reader = request.api.reader(answer.kind, answer.headers.get("content-encoding", ""))
    body = bytearray()
    try:
        async with aclosing(answer.chunks) as chunks:
            async for chunk in chunks:
                body += chunk
                reader.feed(chunk)
                if len(body) > MAX_JSON_BYTES:
                    raise CutError("too long")
    except CutError:
        detail = "The answer of the model's provider broke off. Try again."
        raise ApiError(502, "bad_response", detail) from None
    reader.finish_body()
    whole = ProviderAnswer(answer.status, answer.headers, yield_once(bytes(body)))
    return whole, reader


def _compact_as_demo(request: ParsedRequest) -> Mapping[str, object]:
    said = request.history.messages
    texts = [f"{each.role.capitalize()}: {each.text}" for each in said]
    summary = summarize_extractively(texts, max_tokens=DEMO_TOKENS)
    return make_compacted(summary)


@transaction.atomic
def store_compaction(key: ApiKey, request: ParsedRequest, reader: ReplyReader) -> None:
    """Charge the rest and store the result as a form of the last message.

    A request that begins with it continues the conversation. Nothing is stored for a
    history that is not known.
    """
    used = (reader.tokens_input or request.tokens) + (reader.tokens_output or 0)
    more = max(0, used - request.tokens)
    written = min(reader.tokens_output or 0, more)
    charge_compaction(key, limits.ModelUse(request.model, more - written, written))
    lock_owner(pk=key.owner_id)
    known, history = OwnerHistory(key.owner_id), request.history
    if previous := find_previous(known, request):
        history = go_on_from(history, previous.chain)
    sent = history.messages
    reach = find_reach(sent, known)
    try:
        said = reader.to_message()
        if request.api.names_replies:
            short = read_history(request.api.name, {"input": said["output"]}).messages
        else:
            short = read_reply(request.api.name, said, GENESIS)
    except UnreadableHistoryError:
        return
    is_failed = bool(reader.report.summaries) and not reader.report.made
    # A body without messages is about the reply that it names.
    places = reach.places if sent else [previous.place] if previous else ()
    if reach.length < len(sent) or not (short and places) or is_failed:
        return
    place = places[0]
    conversation = Conversation.objects.get(pk=int(place.conversation))
    keep_forms(conversation.pk, place.position, short[-1:])
    if reader.report.made:
        of_client = ClientConversation.objects.get(pk=conversation.pk)
        last = of_client.find_seq(place.position)
        written = reader.tokens_output
        keep_summaries(conversation, request, reader.report, last, written)
