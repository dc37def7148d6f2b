"""Writes down who of the staff saw or did what; see AccessEvent."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import ValidationError
from django.core.validators import validate_ipv46_address
from django.db.models import BigIntegerField, Case, Max, Q, QuerySet, Value, When
from django.db.models.functions import TruncMinute
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from chatsite.plugins import collect_names
from chatsite.proxies import client_address
from memory.models import Conversation

from .models import AccessEvent, list_staff_actions

StaffAction = AccessEvent.StaffAction

# What targets begin with, and those of lists, which begin so.
LIST_PREFIX = "list "
PARTS = {
    "account": _("account"),
    "call": _("model call"),
    "cause": _("reason:"),
    "conversation": _("conversation"),
    "csv": _("list as CSV:"),
    "request": _("reply and its request"),
    "glass": _("reply and its request"),  # as it was once called
    "log": _("log"),
    "message": _("message"),
    "policy": _("policy"),
    "prompt": _("prompt"),
    "review": _("review"),
    "timeline": _("timeline"),
    "transcript": _("transcript"),
    "turn": _("turn"),
    "version": _("version"),
    "list conversation": _("title (in a list)"),
    "list message": _("beginnings of messages (in a list)"),
    "list prompt": _("beginnings of prompts (in a list)"),
    "list review": _("beginnings of notes (in a list)"),
}

# What makes one look of several events.
KEY = ("one", "minute", "username", "action", "target")


def record_access(
    request: HttpRequest,
    action: str,
    conversation: Conversation | None,
    target: str = "",
    owner_id: int | None = None,
) -> None:
    """Record an access; call it before any content leaves.

    `target` says which part, never its text. `owner_id`: whose it was, where that is no
    single conversation.
    """
    event = _make_event(request, action, conversation, target)
    event.owner_id = event.owner_id or owner_id
    event.save()


def record_list(
    request: HttpRequest,
    conversations: Iterable[Conversation | None],
    target: str,
    action: str = StaffAction.VIEW,
) -> None:
    """Record once each conversation of which a list shows something."""
    found = {row.pk if row else None: row for row in conversations}
    AccessEvent.objects.bulk_create(
        _make_event(request, action, row, target) for row in found.values()
    )


def _make_event(
    request: HttpRequest, action: str, conversation: Conversation | None, target: str
) -> AccessEvent:
    return AccessEvent(
        user=request.user,
        username=request.user.get_username(),
        action=action,
        conversation=conversation.uuid if conversation else None,
        owner_id=conversation.owner_id if conversation else None,
        target=target[:100],
        address=_read_address(request),
    )


def _read_address(request: HttpRequest) -> str | None:
    """Return the reader's address; None where a proxy sends none."""
    address = client_address(request)
    try:
        validate_ipv46_address(address or "")
    except ValidationError:
        return None
    return address


def describe_target(target: str) -> str:
    """Return a target in words, in the reader's language."""
    names = PARTS | collect_names("log_names")
    if target in names:
        return str(names[target])
    first, blank, rest = target.removeprefix(LIST_PREFIX).partition(" ")
    return str(names.get(first, first)) + blank + rest


@dataclass(frozen=True, slots=True)
class Look:
    """One action of a member of the staff: on one conversation, or on a list of them.

    Within a minute, all that a list showed is one entry. Conversations are pairs of an
    id and the row, if it still exists.
    """

    at: datetime
    action: str
    part: str
    username: str
    conversations: list[tuple[UUID | None, Conversation | None]]


def list_accesses(owner: AbstractBaseUser) -> QuerySet[AccessEvent, dict[str, Any]]:
    """Return staff accesses to a user's rows for `read_looks`, newest first."""
    # Events that are not of a list stay rows of their own.
    is_list = When(target__startswith=LIST_PREFIX, then=Value(0))
    one = Case(is_list, default="id", output_field=BigIntegerField())
    rows = AccessEvent.objects.filter(owner=owner)
    rows = rows.annotate(one=one, minute=TruncMinute("created_at"))
    rows = rows.values(*KEY)
    return rows.annotate(newest=Max("id"), at=Max("created_at")).order_by("-newest")


def read_looks(owner: AbstractBaseUser, page: Sequence[dict[str, Any]]) -> list[Look]:
    """Return the rows of a page of list_accesses(), with their conversations."""
    if not page:
        return []
    minutes = [row["minute"] for row in page]
    in_lists = Q(
        target__startswith=LIST_PREFIX,
        created_at__gte=min(minutes),
        created_at__lt=max(minutes) + timedelta(minutes=1),
    )
    events = AccessEvent.objects.filter(owner=owner).order_by("id")
    events = events.filter(in_lists | Q(pk__in=[row["newest"] for row in page]))
    seen: dict[tuple[object, ...], dict[UUID | None, None]] = defaultdict(dict)
    for event in events:
        seen[_make_event_key(event)][event.conversation] = None
    ids = {uuid for each in seen.values() for uuid in each}
    rows = Conversation.objects.filter(owner=owner, uuid__in=ids, deleted_at=None)
    found = {row.uuid: row for row in rows.only("uuid", "title")}
    labels = dict(list_staff_actions())
    return [
        Look(
            at=row["at"],
            action=str(labels.get(row["action"], row["action"])),
            part=describe_target(row["target"]),
            username=row["username"],
            conversations=[
                (uuid, found.get(uuid)) for uuid in seen[tuple(row[k] for k in KEY)]
            ],
        )
        for row in page
    ]


def _make_event_key(event: AccessEvent) -> tuple[object, ...]:
    """Return the values of KEY, as list_accesses() has them."""
    one = 0 if event.target.startswith(LIST_PREFIX) else event.pk
    minute = event.created_at.replace(second=0, microsecond=0)
    return one, minute, event.username, event.action, event.target
