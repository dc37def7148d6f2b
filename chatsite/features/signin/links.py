"""Links that work once: made, counted, found and used.

link_actions.py has the actions of each.
"""

import secrets
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import Q
from django.db.models.functions import Now
from django.http import HttpRequest
from django.urls import reverse
from django.utils.crypto import salted_hmac

from chatsite.proxies import client_address
from memory.prompts import hash_text

from .models import MailedLink

# 192 random bits, of which the log of requests knows the form.
TOKEN_BYTES = 24
# As it was first called: links that are on their way were made with it.
SALT = "chatsite.signin"
HOURS = {
    MailedLink.LinkKind.RESET: 1,
    MailedLink.LinkKind.EMAIL: 24,
    MailedLink.LinkKind.INVITATION: 7 * 24,
}
# Mails within an hour: to one account, to one address of e-mail, and for one address
# of the network, which can ask for those of many.
MOST_OF_ACCOUNT, MOST_TO_ADDRESS, MOST_FROM = 4, 4, 20
# Days that a link is kept after its end, for staff who look why it opened nothing.
KEPT_DAYS = 30


class TooManyLinksError(Exception):
    """The error of too many mails within the hour."""


def make_link(row: MailedLink, request: HttpRequest) -> str:
    """Store a new row and return its full link."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    MailedLink.objects.filter(expires_at__lt=Now() - timedelta(days=KEPT_DAYS)).delete()
    row.token_hash = hash_text(token)
    row.account_state = describe_account(row.user) if row.user else ""
    row.asked_from = client_address(request) or ""
    row.expires_at = Now() + timedelta(hours=HOURS[MailedLink.LinkKind(row.kind)])
    row.save()
    return f"{find_origin(request)}{reverse('signin-link', args=[token])}"


def check_pace(request: HttpRequest, email: str, user: Any = None) -> None:
    """Raise TooManyLinksError if a mail exceeds a limit of its address or account."""
    rows = MailedLink.objects.filter(created_at__gt=Now() - timedelta(hours=1))
    counted: list[tuple[Q, int]] = [(Q(email__iexact=email), MOST_TO_ADDRESS)]
    if user is not None:
        counted.append((Q(user=user), MOST_OF_ACCOUNT))
    if address := client_address(request):
        counted.append((Q(asked_from=address), MOST_FROM))
    if any(rows.filter(which).count() >= most for which, most in counted):
        raise TooManyLinksError


def find_origin(request: HttpRequest) -> str:
    """Return the origin of links.

    In a mail it is never a host that the request names, as mail is sent only with
    SITE_ORIGINS (chatsite/settings.py). Without them, there are only links that staff
    copy from a page that they have opened.
    """
    if settings.SITE_ORIGINS:
        return settings.SITE_ORIGINS[0].rstrip("/")
    return request.build_absolute_uri("/").rstrip("/")


def describe_account(user: AbstractBaseUser) -> str:
    """Return a hash that changes with the password, the address or the last log-in."""
    parts = (user.pk, user.password, user.email, user.last_login)
    text = "\n".join(map(str, parts))
    return salted_hmac(SALT, text, algorithm="sha256").hexdigest()


def find_link(token: str) -> MailedLink:
    """Return the row of a link.

    Raises MailedLink.DoesNotExist for every reason: the link never existed, was used or
    has ended, or its account has changed.
    """
    rows = MailedLink.objects.filter(used_at=None, expires_at__gt=Now())
    # Invitations of staff who have left end, first of all those to themselves.
    rows = rows.exclude(made_by__is_active=False)
    found = rows.select_related("user").get(token_hash=hash_text(token))
    user = found.user
    if user and not (user.is_active and found.account_state == describe_account(user)):
        raise MailedLink.DoesNotExist
    return found


def use_link(link: MailedLink) -> None:
    """Mark a link as used, in the transaction of its action.

    Of two users who use it at once, one gets MailedLink.DoesNotExist.
    """
    rows = MailedLink.objects.filter(pk=link.pk, used_at=None, expires_at__gt=Now())
    if not rows.update(used_at=Now()):
        raise MailedLink.DoesNotExist
