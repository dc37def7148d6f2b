"""The mode of a request, and of a bounded one: its policy, what is sent for it, and
what is summarised when that is too long.
"""

import asyncio
from dataclasses import replace
from functools import partial

from django.conf import settings
from django.db import transaction

from chatsite.accounts import preferences
from chatsite.contrib.endpoint.identity.deciding import decide_lineage
from chatsite.contrib.endpoint.models import ApiKey, ClientConversation
from chatsite.contrib.endpoint.relay.passing import SendLess
from chatsite.contrib.endpoint.store.asked import Asked, Sent
from chatsite.contrib.endpoint.store.known import KnownToOwner
from chatsite.contrib.endpoint.store.opening import (
    Bounds,
    Opened,
    Opening,
    Run,
    TooLong,
    open_whole,
)
from chatsite.contrib.endpoint.store.recording import store_call
from chatsite.turns import lifecycle, runner
from chatsite.turns.attempt import wait_for_room
from chatsite.turns.models import Turn
from memory.models import Conversation

from .choosing import Choosing
from .room import find_limit

# Nothing of the site's own comes between a client's messages, and no provider has them
# in its cache in the form in which the memory has them.
POLICY = {
    "recall_tokens": 0,
    "rules": "off",
    "facts": "off",
    "cached_prefix": False,
}
# Where the key's owner has chosen nothing for new conversations: what a client sends
# stays as it is while it fits.
SIZES = {"trigger": ["fraction", 0.92], "keep": ["fraction", 0.08]}


def make_bounds(key: ApiKey) -> Bounds:
    """As for a new conversation of the key's owner."""
    values = preferences.values_for(key.owner)
    chosen = {"preset": values["preset"]} if values["preset"] else SIZES
    return Bounds({**chosen, **POLICY}, values["own_rules"], choose_sent)


def choose_sent(opening: Opening, limit: int | None = None) -> Sent:
    """What is sent for a request that is being opened. `limit`: what the provider may
    take, where that is less than was thought."""
    asked = opening.asked
    choosing = Choosing(
        asked,
        opening.conversation,
        opening.of_client,
        opening.decision,
        limit or find_limit(asked.wire, asked.model, asked.body.value),
    )
    return choosing.choose(may_leave_out=opening.first is not None)


@transaction.atomic
def open_again(opening: Opening, opened: Opened, limit: int) -> Opened | None:
    """The request with less in it, recorded as one of its own. None: there is no less,
    or the turn was lost or stopped."""
    turn = lifecycle.lock_held(opened.claim)
    if turn is None or turn.cancel_requested_at:
        return None
    opening.conversation.refresh_from_db()
    opening.first = opening.told
    opening.sent = choose_sent(opening, limit)
    if opening.sent.tokens >= opened.sent.tokens:
        return None
    opening.store_pieces(opening.sent.asked.body.pieces)
    call = store_call(opening, opened.reply_seq)
    Turn.objects.filter(pk=turn.pk).update(call=call)
    claim = replace(opened.claim, call_id=call.pk, tokens=opening.sent.tokens)
    return replace(opened, claim=claim, sent=opening.sent, tries=2)


def choose_unstored(key: ApiKey, asked: Asked) -> Sent:
    """What would be sent now. Nothing is written."""
    known = KnownToOwner(key.owner_id, asked.within)
    decision = decide_lineage(asked.history, asked.hints, known)
    if decision.conversation is None:
        return Sent.unchanged(asked)
    limit = find_limit(asked.wire, asked.model, asked.body.value)
    choosing = Choosing(
        asked,
        Conversation.objects.get(pk=int(decision.conversation)),
        ClientConversation.objects.get(pk=int(decision.conversation)),
        decision,
        limit,
    )
    return choosing.choose(may_leave_out=True)


async def open_bounded(key: ApiKey, asked: Asked, run: Run) -> tuple[Opened, SendLess]:
    """Store the request; where it would be too long, summarise before it is sent."""
    bounds = await run(partial(make_bounds, key))
    opening = Opening(key, asked, bounds)
    opened = await open_whole(opening, run)
    if isinstance(opened, TooLong):
        await _summarise_first(opened)
        opening = Opening(key, asked, bounds, first=opened.decision)
        opened = await open_whole(opening, run)
    return opened, partial(_send_less, opening, run)


async def _summarise_first(too_long: TooLong) -> None:
    """Summarise what is too much, for a while. What takes longer goes on alone, and
    serves the next request."""
    task = runner.make_room(too_long.conversation.pk, too_long.limit, rounds=True)
    if task and settings.COMPACTION_WAIT_SECONDS > 0:
        await asyncio.wait([task], timeout=settings.COMPACTION_WAIT_SECONDS)


async def _send_less(
    opening: Opening, run: Run, opened: Opened, result: lifecycle.Result
) -> Opened | None:
    """After the next compaction, into half of what was sent."""
    claim, limit = opened.claim, opened.sent.tokens // 2
    await run(partial(lifecycle.give_up, claim, result))
    task = runner.make_room(opened.conversation.pk, limit)
    held = await wait_for_room(task, claim)
    if held is None:
        return None
    return await run(partial(open_again, opening, replace(opened, claim=held), limit))
