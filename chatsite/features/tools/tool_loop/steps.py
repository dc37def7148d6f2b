"""The steps of turns that call tools, for the core, which knows no tools."""

from collections.abc import Mapping

from django.db.models import Exists, OuterRef, Q

from chatsite.features.tools.events import ToolEvent
from chatsite.features.tools.models import ToolCall
from chatsite.turns.models import Turn
from memory.models import Conversation

from . import answers


def runs_in_steps(turn: Turn) -> bool:
    """Return whether the conversation has tools, or had some at an earlier attempt."""
    if turn.conversation.tools or not turn.may_have_rows:
        return bool(turn.conversation.tools)
    return turn.tool_calls.filter(request__superseded_at=None).exists()


def has_open_calls() -> Exists:
    """Return the condition on turns that close_steps() has to end calls of them."""
    calls = ToolCall.objects.filter(turn=OuterRef("pk"))
    return Exists(calls.filter(state__in=ToolCall.UNANSWERED))


def close_steps(turn: Turn) -> None:
    """End the open calls of a turn that ends, and keep their events for publishing."""
    turn.also_published = [
        ToolEvent.from_call(call) for call in answers.close_calls(turn)
    ]


def is_call_removed() -> Exists:
    """Return the condition on turns of which calls were taken out of the view.

    Calls of an earlier reply do not count.
    """
    calls = ToolCall.objects.filter(turn=OuterRef("pk"), request__superseded_at=None)
    is_hidden = Q(request__excluded_at__isnull=False)
    return Exists(calls.filter(is_hidden | Q(request__deleted_at__isnull=False)))


def supersede_calls(conversation: Conversation) -> list[ToolEvent]:
    """Cancel the late results of superseded messages; return the page events."""
    return [ToolEvent.from_call(call) for call in answers.give_up_late(conversation)]


def name_outcomes(conversation: Conversation) -> Mapping[tuple[int, int], str]:
    """Return {(message number, place): outcome in words} of calls."""
    rows = conversation.tool_calls.values_list("request__seq", "place", "state")
    return {
        (seq, place): str(ToolCall.State(state).label) for seq, place, state in rows
    }
