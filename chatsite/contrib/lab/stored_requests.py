"""The stored requests of replies, as all of the lab finds and rebuilds them."""

from typing import Any

from django.db.models import F, QuerySet

from memory import context
from memory.models import Message, ModelCall
from memory.view import rebuilding

# What an old import can bring, with references of any shape.
UNREADABLE = (LookupError, TypeError, ValueError, AttributeError)


def find_reply_calls(replies: QuerySet[Message, Any]) -> list[ModelCall]:
    """The requests that the replies came from, of each the last, with its number as
    `seq`: in one statement, the oldest first."""
    rows = ModelCall.objects.filter(
        purpose=ModelCall.Purpose.REPLY, message__in=replies.values("pk")
    )
    latest = {
        call.message_id: call
        for call in rows.annotate(seq=F("message__seq")).order_by("id")
    }
    return [*latest.values()]


def rebuild_readable(calls: list[ModelCall]) -> dict[int, context.RequestContext]:
    """The requests of one conversation, by their keys; without those that can't be
    rebuilt."""
    try:
        built = rebuilding.rebuild_contexts(calls)
        return {call.pk: one for call, one in zip(calls, built, strict=True)}
    except UNREADABLE:
        if len(calls) == 1:
            return {}
    # One of them is unreadable: the others are not.
    return {pk: one for call in calls for pk, one in rebuild_readable([call]).items()}


def is_proved(call: ModelCall) -> bool:
    """Return whether it can be rebuilt as it was sent."""
    built = rebuild_readable([call]).get(call.pk)
    return built is not None and built.sha256 == call.sha256
