"""Bounding a request: its policy, what is sent, and what is summarised first."""

import asyncio
from dataclasses import replace
from functools import partial

from django.conf import settings
from django.db import transaction

from chatsite.accounts import preferences
from chatsite.contrib.endpoint.identity.deciding import decide_lineage
from chatsite.contrib.endpoint.models import ApiKey, ClientConversation
from chatsite.contrib.endpoint.relay.reply_relay import SendLess
from chatsite.contrib.endpoint.store.owner_history import OwnerHistory
from chatsite.contrib.endpoint.store.recording import store_call
from chatsite.turns import lifecycle, runner
from chatsite.turns.attempt import wait_for_room
from chatsite.turns.models import Turn

from ..store.parsed_request import OutgoingRequest, ParsedRequest
from ..store.request_store import (
    Bounds,
    OversizedRequest,
    RequestWriter,
    Run,
    StoredRequest,
    store_request,
)
from .message_selection import MessageSelector

# The site adds nothing between a client's messages, and no provider has them in its
# cache in the form that the memory stores.
POLICY = {"recall_tokens": 0, "rules": "off", "facts": "off", "cached_prefix": False}
# Used if the key's owner has chosen no preset for new conversations: a request stays
# unchanged while it fits.
SIZES = {"trigger": ["fraction", 0.92], "keep": ["fraction", 0.08]}


def make_bounds(key: ApiKey) -> Bounds:
    """Return the bounds for a new conversation of the key's owner."""
    values = preferences.values_for(key.owner)
    chosen = {"preset": values["preset"]} if values["preset"] else SIZES
    return Bounds({**chosen, **POLICY}, values["own_rules"], select_outgoing)


def select_outgoing(writer: RequestWriter, limit: int | None = None) -> OutgoingRequest:
    """Return what is sent for a request that is being stored.

    `limit` is what the provider may accept, if that is less than expected.
    """
    of_client, decision = writer.of_client, writer.decision
    selector = MessageSelector(writer.request, of_client, decision, limit)
    return selector.select_messages(may_leave_out=writer.first is not None)


@transaction.atomic
def store_shortened(
    writer: RequestWriter, stored: StoredRequest, limit: int
) -> StoredRequest | None:
    """Store a shorter form of the request, recorded as one of its own.

    Return None if it gets no shorter, or if the turn was lost or stopped.
    """
    turn = lifecycle.lock_held(stored.claim)
    if turn is None or turn.cancel_requested_at:
        return None
    writer.conversation.refresh_from_db()
    writer.first = writer.reported
    writer.sent = select_outgoing(writer, limit)
    if writer.sent.tokens >= stored.sent.tokens:
        return None
    writer.store_pieces(writer.sent.request.body.pieces)
    call = store_call(writer, stored.reply_seq)
    Turn.objects.filter(pk=turn.pk).update(call=call)
    claim = replace(stored.claim, call_id=call.pk, tokens=writer.sent.tokens)
    return replace(stored, claim=claim, sent=writer.sent, tries=2)


def select_unstored(key: ApiKey, request: ParsedRequest) -> OutgoingRequest:
    """Return what would be sent now. Write nothing."""
    known = OwnerHistory(key.owner_id, request.within)
    decision = decide_lineage(request.history, request.hints, known)
    if decision.conversation is None:
        return OutgoingRequest.make_unchanged(request)
    rows = ClientConversation.objects.select_related("conversation")
    of_client = rows.get(pk=int(decision.conversation))
    selector = MessageSelector(request, of_client, decision)
    return selector.select_messages(may_leave_out=True)


async def store_bounded(
    key: ApiKey, request: ParsedRequest, run: Run
) -> tuple[StoredRequest, SendLess]:
    """Store the request; if it would be too long, summarise before it is sent."""
    bounds = await run(partial(make_bounds, key))
    writer = RequestWriter(key, request, bounds)
    stored = await store_request(writer, run)
    if isinstance(stored, OversizedRequest):
        await _summarise_first(stored)
        writer = RequestWriter(key, request, bounds, first=stored.decision)
        stored = await store_request(writer, run)
    return stored, partial(_send_less, writer, run)


async def _summarise_first(too_long: OversizedRequest) -> None:
    """Summarise the excess, for a limited time.

    Longer work goes on in the background and serves the next request.
    """
    task = runner.make_room(too_long.conversation.pk, too_long.limit, rounds=True)
    if task and settings.COMPACTION_WAIT_SECONDS > 0:
        await asyncio.wait([task], timeout=settings.COMPACTION_WAIT_SECONDS)


async def _send_less(
    writer: RequestWriter, run: Run, stored: StoredRequest, result: lifecycle.TurnResult
) -> StoredRequest | None:
    """Return the request at half its length, after the next compaction."""
    claim, limit = stored.claim, stored.sent.tokens // 2
    await run(partial(lifecycle.give_up, claim, result))
    task = runner.make_room(stored.conversation.pk, limit)
    held = await wait_for_room(task, claim)
    if held is None:
        return None
    stored = replace(stored, claim=held)
    return await run(partial(store_shortened, writer, stored, limit))
