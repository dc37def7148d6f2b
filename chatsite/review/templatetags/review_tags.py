"""What pages show of the desk: numbers as people write them, and, on the account page,
which of a person's conversations staff have read.
"""

from typing import Any

from django import template
from django.conf import settings
from django.core.paginator import Paginator
from django.http import HttpRequest

from chatsite import languages
from memory.models import Conversation

from .. import access_log, redaction
from ..models import AccessEvent

PAGE = 20

register = template.Library()


@register.filter
def thousands(number: int | None) -> str:
    return "–" if number is None else languages.thousands(number)


@register.filter
def error_code(text: str) -> str:
    return redaction.code(text)


@register.filter
def part(event: AccessEvent) -> str:
    return access_log.in_words(event.target)


@register.inclusion_tag("review/_accesses.html", takes_context=True)
def accesses(context: dict[str, Any]) -> dict[str, Any]:
    """What staff did with the conversations of whoever is signed in, if the settings
    let people know."""
    request: HttpRequest = context["request"]
    shown = settings.STAFF_ACCESS_SHOWN
    if shown == "no":
        return {"is_shown": False}
    events = AccessEvent.objects.filter(owner=request.user)
    page = Paginator(events, PAGE).get_page(request.GET.get("accesses"))
    return {
        "is_shown": True,
        "with_names": shown == "names",
        "page": page,
        "conversations": _own(request, page.object_list),
    }


def _own(request: HttpRequest, events: Any) -> dict[Any, Conversation]:
    """Those that are still there, by their ids."""
    uuids = {event.conversation for event in events}
    rows = Conversation.objects.filter(
        owner=request.user, uuid__in=uuids, deleted_at=None
    )
    return {row.uuid: row for row in rows.only("uuid", "title")}


@register.filter
def get(values: dict[Any, Any], key: Any) -> Any:
    return values.get(key)
