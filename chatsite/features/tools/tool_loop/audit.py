"""The invariants of calls: one message answers each call, and groups stay whole."""

from collections.abc import Iterator

from django.db.models import F, Q, QuerySet

from chatsite.features.tools.models import ToolCall
from chatsite.turns.models import Turn
from memory.integrity.audit import Violation, report_rows
from memory.models import Message

State = ToolCall.State


def find_unanswered_calls() -> Iterator[Violation]:
    """Yield calls without a result: providers refuse such a request."""
    ended = ToolCall.objects.exclude(turn__state__in=Turn.UNFINISHED)
    left = ended.filter(state__in=ToolCall.UNANSWERED)
    yield from _each(left, "R4.call", "is open although its turn has ended")
    over = ToolCall.objects.exclude(state__in=ToolCall.UNANSWERED)
    # A copy or an import can end between a call and its result.
    silent = over.filter(
        result=None,
        request__imported_at=None,
        request__created_at__gte=F("conversation__created_at"),
    )
    yield from _each(silent, "R4.result", "has no message that answers it")


def find_torn_calls() -> Iterator[Violation]:
    """Yield calls whose messages do not belong together or are not visible together."""
    answered = ToolCall.objects.exclude(result=None)
    fitting = answered.filter(
        result__role=Message.Role.TOOL,
        result__tool_call_id=F("call_id"),
        result__conversation=F("conversation"),
        request__conversation=F("conversation"),
        result__seq__gt=F("request__seq"),
    )
    others = answered.exclude(pk__in=fitting.values("pk"))
    yield from _each(others, "R6.call", "is answered by another call's message")
    torn = Q()
    # Deleted messages are out of the view, as hidden ones are.
    for marks in (("excluded_at", "deleted_at"), ("superseded_at",)):
        sides = ("request", "result")
        asked, told = (Q(*((f"{side}__{m}", None) for m in marks)) for side in sides)
        torn |= (asked & ~told) | (~asked & told)
    yield from _each(answered.filter(torn), "R6.torn", "is seen without its result")


def find_stray_results() -> Iterator[Violation]:
    """Results that no call has; those of a copied or imported one are older."""
    rows = Message.objects.filter(
        role=Message.Role.TOOL,
        imported_at=None,
        created_at__gte=F("conversation__created_at"),
        call_answered=None,
        late_call=None,
    )
    return report_rows(rows, "R6.result", "result #{} belongs to no call", "seq")


def _each(rows: QuerySet[ToolCall], code: str, words: str) -> Iterator[Violation]:
    return report_rows(rows, code, f"call {{}} ({{}}) {words}", "pk", "state")


FINDERS = (find_unanswered_calls, find_torn_calls, find_stray_results)
