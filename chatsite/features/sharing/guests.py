"""Guests: temporary accounts of readers who try a copy without an account of theirs.

A guest has one temporary conversation with the demo model, and may open only the
addresses in OPEN. The account is deleted with all its rows after LIFETIME.
"""

import re
import secrets
from contextlib import suppress
from datetime import timedelta
from functools import partial
from math import ceil, inf
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth import get_user_model, login
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import DatabaseError, IntegrityError, transaction
from django.db.models.functions import Now
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import Resolver404, resolve
from django.utils.deprecation import MiddlewareMixin
from django.views.decorators.http import require_POST

from chatsite.accounts.account import BusyError, delete_account
from chatsite.llm import providers
from chatsite.turns import limits

from .copies import copy_moment
from .models import Guest, Share
from .pace import wait_for_copy
from .views import explain_pace, read_moment, shared_view

LIFETIME = timedelta(hours=1)
# The tokens that a guest may use: some dozens of turns.
TOKENS = 100_000
# In the session of a guest: the id of the copy, which guest.html reads.
KEY = "guest_copy"
# The names of the addresses that a guest may open; all others are refused.
OPEN = re.compile(
    r"log(in|out)|signup|theme|language|healthz|readyz|metrics|manifest|shared-\w+|"
    r"diagram-frame|conversation-(detail|delete|message(s|-menu)|context(-json)?|"
    r"summaries|transcript|grounding|rename|branch|costs|export-(json|md))|"
    r"memory-(message|switch(es-keep|es-undo)?|summaries|diff|edit|rewrite|restore|"
    r"find|draft|moment|raw|work|stop|(set-)?system-prompt|preview|propose|proposal|"
    # A trial asks the model of its reply.
    r"accept)|trials-ask|trial-(stop|reply)"
)
# Addresses that copy the conversation of a guest, and how many a guest may have.
COPIES, MOST_CONVERSATIONS = ("conversation-branch", "trial-reply"), 10
# Elements that lead to an address of the site.
LEADING = re.compile(
    r'<[a-z]+\b(?=[^<>]*\s(?:href|action|hx-get|hx-post|data-upload)="(/[^"?#]*))'
)


class GuestMiddleware(MiddlewareMixin):
    """Keeps guests out of every page but those of their copy, and hides other links.

    OPEN is the rule for the links and buttons of all apps.
    """

    def process_view(self, request: HttpRequest, *view: object) -> HttpResponse | None:
        name = request.resolver_match.view_name
        if OPEN.fullmatch(name) and name not in COPIES or not _is_guest(request):
            return None
        owned = request.user.conversations.count() if name in COPIES else inf
        if owned < MOST_CONVERSATIONS:
            return None
        return render(request, "sharing/guest.html", status=403)

    def process_response(self, request: HttpRequest, response: HttpResponse) -> Any:
        is_page = response.get("Content-Type", "").startswith("text/html")
        # Shared pages read no session.
        if is_page and request.session.accessed and _is_guest(request):
            page = response.content.decode()
            response.content = LEADING.sub(_hide_refused, page)
        return response


def _is_guest(request: HttpRequest) -> bool:
    # Without a cookie there is no session, and an answer need not vary by it.
    is_known = settings.SESSION_COOKIE_NAME in request.COOKIES
    # The view reads the session too, and explains why it could not.
    with suppress(DatabaseError):
        return is_known and KEY in request.session
    return False


def _hide_refused(start: re.Match) -> str:
    with suppress(Resolver404):
        if not OPEN.fullmatch(resolve(start[1]).view_name):
            return f"{start[0]} hidden"
    return start[0]


@partial(shared_view, allow=require_POST)
def try_copy(request: HttpRequest, share: Share) -> HttpResponse:
    """Copy the moment for the reader, as a guest unless they are logged in."""
    if not (share.may_be_copied and (seen := read_moment(request, share)).is_whole):
        raise Http404
    if seconds := ceil(wait_for_copy(request)):
        return explain_pace(request, seconds)
    is_user = request.user.is_authenticated
    try:
        with transaction.atomic():
            owner = request.user if is_user else _create_guest()
            values = {} if is_user else {"model": providers.DEMO, "temporary": True}
            made = copy_moment(share, seen, owner, **values)
    except IntegrityError:
        # There is no free slot, or another reader took the last one meanwhile.
        return render(request, "sharing/guest.html", status=503)
    if not is_user:
        login(request, owner, backend="django.contrib.auth.backends.ModelBackend")
        request.session[KEY] = str(made.uuid)
    return redirect("conversation-detail", made.uuid)


def _create_guest() -> AbstractBaseUser:
    """Return a new guest. Raises IntegrityError without a free slot."""
    taken = Guest.objects.values_list("slot", flat=True)
    if not (free := sorted({*range(settings.SHARE_GUESTS)}.difference(taken))):
        raise IntegrityError
    user = get_user_model().objects.create_user(f"guest-{secrets.token_hex(8)}")
    Guest.objects.create(user=user, slot=free[0], expires_at=Now() + LIFETIME)
    allowance = limits.lock_allowance(user.pk)
    allowance.tokens_per_day = TOKENS
    allowance.save(update_fields=["tokens_per_day"])
    return user


find_expired_guests = partial(Guest.objects.filter, expires_at__lte=Now())


@database_sync_to_async
def sweep_guests() -> None:
    for guest in find_expired_guests().select_related("user"):
        with suppress(BusyError):
            delete_account(guest.user)
