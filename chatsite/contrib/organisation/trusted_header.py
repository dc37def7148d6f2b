"""Log-in by a header that a proxy sets, from proxies that the operator names and from
no one else.
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
# In sessions that a header has begun: they end when it is gone.
KEY = "signin_by_header"


class HeaderError(ValueError):
    """The proxy names no one, or more than one."""


_networks = cache(find_networks)


def is_from_proxy(request: HttpRequest) -> bool:
    """By the other end of the connection: what X-Forwarded-For says, anyone can say."""
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
    """The name that the proxy gives; "" if there is none. Raises HeaderError.

    From the connection itself: Django takes a header with underscores for the same one,
    which a proxy that removes the right one lets through.
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
    """The account of this name, made where there is none; None: it is deactivated."""
    people = get_user_model().objects
    user, is_new = people.get_or_create(username=name)
    if is_new:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    return user if user.is_active else None


class TrustedHeaderMiddleware:
    """Behind the one that reads the session."""

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
