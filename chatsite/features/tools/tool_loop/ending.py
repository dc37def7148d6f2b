"""The one place where calls of tools end."""

from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Now

from chatsite import plugins
from chatsite.features.tools import registry
from chatsite.features.tools.models import ToolCall

State = ToolCall.State
# States that say by themselves that something went wrong.
FAILED = (State.FAILED, State.CANCELLED, State.UNKNOWN)


def end_calls(
    calls: QuerySet[ToolCall],
    state: str,
    error: str = "",
    *,
    tells_tool: bool = False,
    **columns: Any,
) -> int:
    """Move these calls to their last state in one statement, and return their number.

    "done", "failed" and "cancelled" end a call, and so does "unknown", if it may have
    run or not. "late" does not: its request has an answer, but the result is still to
    come.

    The state, the code of the error, the time and the `columns` of the caller, such as
    the message with the result, are stored. The handle of a late result can contain
    words of the call, so it is deleted, unless the tool has work that is no longer
    wanted (`tells_tool`): then the next background job notifies the tool and deletes
    it. The callers notify the pages after the commit, with events.ToolEvent.
    """
    if tells_tool:
        # A process that looks for its result now comes too late.
        columns |= {"owner": "", "next_look_at": Now()}
    else:
        columns |= {"handle": None, "next_look_at": None}
    # By their keys: once they have ended, other calls may be these.
    has_listeners = plugins.step_ended.has_listeners(ToolCall)
    keys = [*calls.values_list("pk", flat=True)] if has_listeners else []
    ended = calls.update(state=state, error=error, finished_at=Now(), **columns)
    if keys:
        _send_ended(keys)
    return ended


def _send_ended(pks: list[int]) -> None:
    """Send step_ended for the calls that have run.

    A name that is no tool of the site is replaced: the model has written it.
    """
    rows = ToolCall.objects.filter(pk__in=pks, started_at__isnull=False)
    rows = rows.select_related("conversation", "request")
    for call in rows.defer("arguments", "request__text"):
        is_known = call.name in registry.known()
        plugins.step_ended.send_robust(
            ToolCall,
            conversation=call.conversation,
            turn=call.turn_id,
            seq=call.request.seq,
            name=call.name if is_known else "unknown",
            error=call.error or (call.state if call.state in FAILED else ""),
            started_at=call.started_at,
            finished_at=call.finished_at,
        )
