"""Lookup and rebuilding of the stored requests of replies, for all of the lab."""

from typing import Any

from django.db.models import F, QuerySet

from memory import context
from memory.models import Message, ModelCall
from memory.view import rebuilding

# Errors from the references of an old import, which can have any shape.
UNREADABLE = (LookupError, TypeError, ValueError, AttributeError)


def find_reply_calls(replies: QuerySet[Message, Any]) -> list[ModelCall]:
    """Return the last request of each of the replies, the oldest first.

    Each has the number of its reply as `seq`. Takes one query.
    """
    rows = ModelCall.objects.filter(
        purpose=ModelCall.Purpose.REPLY, message__in=replies.values("pk")
    )
    latest = {
        call.message_id: call
        for call in rows.annotate(seq=F("message__seq")).order_by("id")
    }
    return [*latest.values()]


def rebuild_readable(calls: list[ModelCall]) -> dict[int, context.RequestContext]:
    """Rebuild the requests of one conversation, by their keys.

    Requests that cannot be rebuilt are left out.
    """
    try:
        built = rebuilding.rebuild_contexts(calls)
        return {call.pk: one for call, one in zip(calls, built, strict=True)}
    except UNREADABLE:
        if len(calls) == 1:
            return {}
    # At least one is unreadable; rebuild each separately to keep the others.
    return {pk: one for call in calls for pk, one in rebuild_readable([call]).items()}


def is_proved(call: ModelCall) -> bool:
    """Return whether the request can be rebuilt exactly as it was sent."""
    built = rebuild_readable([call]).get(call.pk)
    return built is not None and rebuilding.is_sent(call, built)
