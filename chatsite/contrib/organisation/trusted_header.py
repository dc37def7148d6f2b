"""Log-in by a header that a trusted proxy sets.

Only the proxies that the operator names are trusted.
"""

import ipaddress
from collections.abc import Callable
from functools import cache

from django.conf import settings
from django.contrib.auth import get_user_model, login, logout
from django.contrib.auth.base_user import AbstractBaseUser
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from .proxies import UNIX, find_networks

LOCAL = "django.contrib.auth.backends.ModelBackend"
# Marks a session that the header began; it ends when the header is missing.
KEY = "signin_by_header"


class HeaderError(ValueError):
    """The header names no valid user, or is sent more than once."""


_networks = cache(find_networks)


def is_from_proxy(request: HttpRequest) -> bool:
    """Return whether the connection itself comes from a trusted proxy.

    X-Forwarded-For is not read, because every client can send it.
    """
    proxies = tuple(settings.TRUSTED_USER_PROXIES)
    address = request.META.get("REMOTE_ADDR")
    if not address:
        return UNIX in proxies
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(parsed in network for network in _networks(proxies))


def read_header(request: HttpRequest) -> str:
    """Return the user name that the proxy sends, or "". Raises HeaderError.

    Read from the ASGI scope, because Django takes a header spelled with underscores for
    the same one, and a proxy that removes the exact name lets that through.
    """
    name = settings.TRUSTED_USER_HEADER.lower().encode("latin-1")
    scope = getattr(request, "scope", {})
    found = [value for key, value in scope.get("headers", ()) if key == name]
    if len(found) > 1:
        raise HeaderError
    try:
        named = found[0].decode().strip() if found else ""
    except UnicodeDecodeError:
        raise HeaderError from None
    if named:
        field = get_user_model()._meta.get_field("username")
        try:
            field.run_validators(named)
        except ValidationError:
            raise HeaderError from None
    return named


def find_account(name: str) -> AbstractBaseUser | None:
    """Return the account with this name, or None if it is deactivated.

    A missing account is created, without a password.
    """
    people = get_user_model().objects
    user, is_new = people.get_or_create(username=name)
    if is_new:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    return user if user.is_active else None


class TrustedHeaderMiddleware:
    """Logs users in and out by the header; runs after AuthenticationMiddleware."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        try:
            name = read_header(request) if is_from_proxy(request) else ""
        except HeaderError:
            return _refuse(request, "header")
        if name:
            current = request.user
            if not current.is_authenticated or current.get_username() != name:
                user = find_account(name)
                if user is None:
                    logout(request)
                    return _refuse(request, "inactive")
                login(request, user, backend=LOCAL)
                request.session[KEY] = True
        elif request.user.is_authenticated and request.session.get(KEY):
            logout(request)
        return self.get_response(request)


def _refuse(request: HttpRequest, reason: str) -> HttpResponse:
    values = {"provider": None, "reason": reason}
    return render(request, "organisation/refused.html", values, status=403)
