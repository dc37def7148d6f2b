"""Noting where people are logged in, and logging one of these places out."""

from datetime import timedelta
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.sessions.models import Session
from django.db import IntegrityError, transaction
from django.http import HttpRequest
from django.utils import timezone

from chatsite.accounts import sessions

from .models import Device
from .naming import name_browser

# In the session: its key, under which the device was noted, and when that was. A new
# key (after a change of the password) or no note (from before there was a list) is
# noted again.
NOTED = "device"
SELDOM = timedelta(hours=1)
MOST_LISTED = 50


def note_log_in(
    sender: object, request: HttpRequest, user: AbstractBaseUser, **kwargs: object
) -> None:
    if not request.session.session_key:
        request.session.save()
    _note_device(request, user)


def note_visit(request: HttpRequest, **_: object) -> None:
    """Costs nothing but for one visit an hour: the session has been read anyway."""
    key, noted_at = request.session.get(NOTED, ("", 0))
    now = timezone.now().timestamp()
    if key == request.session.session_key and now - noted_at < SELDOM.total_seconds():
        return
    _note_device(request, request.user)


def _note_device(request: HttpRequest, user: Any) -> None:
    key, now = request.session.session_key, timezone.now()
    browser, system = name_browser(request.headers.get("User-Agent", ""))
    names = {"owner": user, "browser": browser, "system": system}
    try:
        with transaction.atomic():
            Device.objects.update_or_create(
                session_id=key,
                defaults={"last_seen_at": now},
                create_defaults={**names, "last_seen_at": now},
            )
    except IntegrityError:
        return  # Two pages at once: the other one has noted it.
    request.session[NOTED] = (key, now.timestamp())


def list_devices(user: Any) -> list[Device]:
    """Return the devices of the user, the latest first, MOST_LISTED at most.

    Sessions that a changed password has ended stay in their table until they are used,
    so each is checked as a request would be.
    """
    alive = Device.objects.filter(owner=user, session__expire_date__gt=timezone.now())
    rows = alive.select_related("session").order_by("-last_seen_at", "-pk")
    return [
        row
        for row in rows[:MOST_LISTED]
        if sessions.is_signed_in(user, row.session.session_data)
    ]


def describe_devices(user: Any) -> list[dict[str, Any]]:
    """Return the devices for the user's download."""
    columns = ("browser", "system", "logged_in_at", "last_seen_at")
    return [
        {name: getattr(device, name) for name in columns}
        for device in list_devices(user)
    ]


def log_out(user: Any, pk: int) -> bool:
    """End the session on this device of the user; return False if there is none.

    Each process closes its sockets when it next checks all sessions.
    """
    found = Session.objects.filter(device__pk=pk, device__owner=user)
    return bool(found.delete()[0])
