"""Writes down who of the staff saw or did what; see AccessEvent."""

from collections.abc import Iterable

from django.core.exceptions import ValidationError
from django.core.validators import validate_ipv46_address
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from chatsite.proxies import client_address
from memory.models import Conversation

from .models import AccessEvent

Action = AccessEvent.Action

# What targets begin with, and whole ones.
PARTS = {
    "call": _("model call"),
    "cause": _("because of:"),
    "conversation": _("conversation"),
    "export": _("export"),
    "request": _("reply and what was sent for it"),
    "glass": _("reply and what was sent for it"),  # as it was once called
    "log": _("log"),
    "message": _("message"),
    "policy": _("policy"),
    "prompt": _("prompt"),
    "review": _("review"),
    "timeline": _("timeline"),
    "transcript": _("transcript"),
    "experiment": _("experiment"),
    "trial": _("experiment"),  # as it was once called
    "turn": _("turn"),
    "version": _("version"),
}
LISTS = {
    "list conversation": _("its title in a list"),
    "list message": _("beginnings of its messages in a list"),
    "list prompt": _("beginnings of prompts in a list"),
    "list review": _("beginnings of notes on it in a list"),
}


def record(
    request: HttpRequest,
    action: str,
    conversation: Conversation | None,
    target: str = "",
) -> None:
    """Call it before any content leaves; `target` says which part, never its text."""
    _event(request, action, conversation, target).save()


def record_list(
    request: HttpRequest, conversations: Iterable[Conversation | None], target: str
) -> None:
    """Each conversation once of which a list shows something."""
    found = {row.pk if row else None: row for row in conversations}
    AccessEvent.objects.bulk_create(
        _event(request, Action.VIEW, row, target) for row in found.values()
    )


def _event(
    request: HttpRequest, action: str, conversation: Conversation | None, target: str
) -> AccessEvent:
    return AccessEvent(
        user=request.user,
        username=request.user.get_username(),
        action=action,
        conversation=conversation.uuid if conversation else None,
        owner_id=conversation.owner_id if conversation else None,
        target=target[:100],
        address=_address(request),
    )


def _address(request: HttpRequest) -> str | None:
    """None where a proxy sends what is no address: the event must be written."""
    address = client_address(request)
    try:
        validate_ipv46_address(address or "")
    except ValidationError:
        return None
    return address


def describe(target: str) -> str:
    """A target as a person reads it, in their language."""
    if target in LISTS:
        return str(LISTS[target])
    first, blank, rest = target.partition(" ")
    return str(PARTS.get(first, first)) + blank + rest
