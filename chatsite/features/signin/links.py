"""Links that work once: made, counted, found and used. deeds.py says what each does."""

import hashlib
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
    """So many mails were sent within the hour that there are no more for now."""


def make_link(row: MailedLink, request: HttpRequest) -> str:
    """The link of a row that is new, in full; the row is stored."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    MailedLink.objects.filter(expires_at__lt=Now() - timedelta(days=KEPT_DAYS)).delete()
    row.token_hash = hash_token(token)
    row.account_state = describe_account(row.user) if row.user else ""
    row.asked_from = client_address(request) or ""
    row.expires_at = Now() + timedelta(hours=HOURS[MailedLink.LinkKind(row.kind)])
    row.save()
    return f"{find_origin(request)}{reverse('signin-link', args=[token])}"


def check_pace(request: HttpRequest, email: str, user: Any = None) -> None:
    """Raises TooManyLinksError, before a mail is one too many for someone."""
    rows = MailedLink.objects.filter(created_at__gt=Now() - timedelta(hours=1))
    counted: list[tuple[Q, int]] = [(Q(email__iexact=email), MOST_TO_ADDRESS)]
    if user is not None:
        counted.append((Q(user=user), MOST_OF_ACCOUNT))
    if address := client_address(request):
        counted.append((Q(asked_from=address), MOST_FROM))
    if any(rows.filter(which).count() >= most for which, most in counted):
        raise TooManyLinksError


def find_origin(request: HttpRequest) -> str:
    """The beginning of a link: of one in a mail never a host that the request names, as
    mail is sent with SITE_ORIGINS alone (chatsite/settings.py). Without, there are only
    links that staff copy from the page that they have opened."""
    if settings.SITE_ORIGINS:
        return settings.SITE_ORIGINS[0].rstrip("/")
    return request.build_absolute_uri("/").rstrip("/")


def hash_token(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def describe_account(user: AbstractBaseUser) -> str:
    """Something else as soon as the password, the address or the last log-in is."""
    parts = (user.pk, user.password, user.email, user.last_login)
    text = "\n".join(map(str, parts))
    return salted_hmac(SALT, text, algorithm="sha256").hexdigest()


def find_link(token: str) -> MailedLink:
    """What a link opens. Raises MailedLink.DoesNotExist: for one that never was, that
    was used or has ended, and whose account is not as it was, alike."""
    rows = MailedLink.objects.filter(used_at=None, expires_at__gt=Now())
    # Nor do those of staff who have left invite anyone, first of all themselves.
    rows = rows.exclude(made_by__is_active=False)
    found = rows.select_related("user").get(token_hash=hash_token(token))
    user = found.user
    if user and not (user.is_active and found.account_state == describe_account(user)):
        raise MailedLink.DoesNotExist
    return found


def use_link(link: MailedLink) -> None:
    """In the transaction of what the link does: of two who use it at once, one raises
    MailedLink.DoesNotExist."""
    rows = MailedLink.objects.filter(pk=link.pk, used_at=None, expires_at__gt=Now())
    if not rows.update(used_at=Now()):
        raise MailedLink.DoesNotExist
