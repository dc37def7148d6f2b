"""The adapters of allauth: which account a log-in opens, and how a new one is named.

An e-mail address alone never opens an account.
"""

import logging
import re
import time
from collections.abc import Collection
from datetime import UTC, datetime
from string import digits
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter, get_adapter
from allauth.account.internal.flows.login import perform_login, record_authentication
from allauth.account.models import Login
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.conf import settings
from django.contrib.auth import login
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.crypto import get_random_string
from django.utils.http import url_has_allowed_host_and_scheme

from chatsite.accounts.names import (
    TakenNameError,
    find_free_names,
    is_taken_address,
    save_account,
)
from chatsite.proxies import client_address

from . import account_rechecks, membership
from .configuration import IdentityProvider
from .tokens import find_provider

logger = logging.getLogger(__name__)
LOCAL = "django.contrib.auth.backends.ModelBackend"
MOST_OF_NAME = 150
MOST_NUMBERED = 20
# Key in the state of a log-in: when its session ends, in Unix seconds, or None.
UNTIL = "until"


def refuse_login(
    request: HttpRequest, reason: str, provider: IdentityProvider | None = None
) -> HttpResponse:
    """Return a page that says what to do, and log the reason."""
    log_refusal(reason, provider)
    return show_refusal(request, reason, provider)


def log_refusal(reason: str, provider: IdentityProvider | None) -> None:
    logger.warning(
        "log-in refused: provider=%s reason=%s",
        provider.id if provider else "unknown",
        re.sub(r"\W+", "_", reason),
    )


def show_refusal(
    request: HttpRequest, reason: str, provider: IdentityProvider | None
) -> HttpResponse:
    values = {"provider": provider, "reason": reason}
    return render(request, "organisation/refused.html", values, status=403)


def find_target(request: HttpRequest) -> str | None:
    """Return the page of this site that was requested before the log-in, if any."""
    target = request.POST.get("next", "")
    is_safe = bool(target) and get_adapter().is_safe_url(target)
    return target if is_safe else None


class AccountAdapter(DefaultAccountAdapter):
    def login(self, request: HttpRequest, user: Any) -> None:
        login(request, user, backend=LOCAL)

    def post_login(
        self,
        request: HttpRequest,
        user: Any,
        *,
        signal_kwargs: dict[str, Any] | None,
        **others: Any,
    ) -> HttpResponse:
        """End the session when the provider, or its description, says so."""
        told = signal_kwargs or {}
        until = (told["sociallogin"].state if "sociallogin" in told else told).get(
            UNTIL
        )
        longest = time.time() + settings.SESSION_COOKIE_AGE
        request.session.set_expiry(
            datetime.fromtimestamp(min(until, longest), UTC) if until else None
        )
        return super().post_login(request, user, signal_kwargs=signal_kwargs, **others)

    def respond_user_inactive(self, request: HttpRequest, user: Any) -> HttpResponse:
        return refuse_login(request, "inactive")

    def get_client_ip(self, request: HttpRequest) -> str:
        """Return the address of the client.

        The proxy's address would be shared by all users whose wrong codes are counted.
        """
        return client_address(request) or ""

    def is_safe_url(self, url: str) -> bool:
        """Accept only pages of this site, given as a path."""
        is_path = bool(url) and url.startswith("/")
        return is_path and url_has_allowed_host_and_scheme(url, None)

    def add_message(
        self,
        request: HttpRequest,
        level: int,
        message_template: Any = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Add the message, unless the page shows that by itself."""
        if message_template != "account/messages/logged_in.txt":
            super().add_message(request, level, message_template, *args, **kwargs)

    def send_notification_mail(self, *args: Any, **kwargs: Any) -> None:
        """Send nothing: the site sends its own mails."""


class SocialAccountAdapter(DefaultSocialAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        provider = find_provider(sociallogin.account.provider)
        return provider is not None and provider.create_accounts

    def is_auto_signup_allowed(self, request: HttpRequest, sociallogin: Any) -> bool:
        return True

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        """Update the account's groups, and refuse or finish the log-in.

        allauth calls this before it logs in, connects or creates an account.
        """
        provider = find_provider(sociallogin.account.provider)
        if provider is None:
            raise ImmediateHttpResponse(refuse_login(request, "provider"))
        if sociallogin.is_existing:
            # Unknown groups differ from an empty list: the account keeps its rights.
            if request.signin_groups is not None:
                groups = request.signin_groups
                membership.apply_groups(sociallogin.user, provider, groups)
            account_rechecks.keep_token(
                sociallogin.user, provider, request.signin_token
            )
        is_new = sociallogin.state.get("process") != "connect"
        reason = _find_refusal(provider, sociallogin, request.signin_groups)
        if reason:
            raise ImmediateHttpResponse(refuse_login(request, reason, provider))
        if is_new and sociallogin.is_existing:
            # allauth's own log-in would keep the provider's token in the session while
            # the second factor is asked for.
            raise ImmediateHttpResponse(_log_in(request, sociallogin))

    def on_authentication_error(
        self, request: HttpRequest, provider: Any, error: Any = None, **others: Any
    ) -> None:
        exception = others.get("exception")
        ours = find_provider(provider.app.provider_id)
        # Nothing of the provider's own text is logged: of an exception its class is
        # enough, unless it is a TokenError, whose text comes from this site.
        reason = type(exception).__name__ if exception else str(error or "unknown")
        if reason == "TokenError":
            reason = f"token {exception}"
        raise ImmediateHttpResponse(refuse_login(request, reason, ours))

    def populate_user(
        self, request: HttpRequest, sociallogin: Any, data: dict[str, Any]
    ) -> Any:
        """Set the name and the e-mail address of a new account.

        An address that another account has, or that the provider does not vouch for,
        is left out.
        """
        user, claims = sociallogin.user, sociallogin.account.extra_data
        user.username = find_free_name(claims.get("name", ""))
        email = claims.get("address", "")
        user.email = "" if is_taken_address(email) else email
        return user

    def save_user(
        self, request: HttpRequest, sociallogin: Any, form: Any = None
    ) -> Any:
        user = sociallogin.user
        user.set_unusable_password()
        self._save_with_name(request, sociallogin)
        provider = find_provider(sociallogin.account.provider)
        membership.apply_groups(user, provider, request.signin_groups or ())
        account_rechecks.keep_token(user, provider, request.signin_token)
        return user

    def _save_with_name(self, request: HttpRequest, sociallogin: Any) -> None:
        """Save the account, under another name if its name was taken meanwhile."""
        user = sociallogin.user
        while True:
            try:
                with transaction.atomic():
                    save_account(user)
                    sociallogin.save(request)
                return
            except TakenNameError:
                user.pk, user._state.adding = None, True
                wished = sociallogin.account.extra_data.get("name", "")
                user.username = find_free_name(wished)

    def get_connect_redirect_url(self, request: HttpRequest, socialaccount: Any) -> str:
        return reverse("account")


def _find_refusal(
    provider: IdentityProvider, sociallogin: Any, groups: Collection[str] | None
) -> str:
    """Return the reason why this log-in is refused, or "" if it is not."""
    is_connecting = sociallogin.state.get("process") == "connect"
    if not membership.is_member(provider, groups or ()):
        return "groups unknown" if groups is None else "group"
    if sociallogin.is_existing:
        return "" if sociallogin.user.is_active else "inactive"
    return "" if is_connecting or provider.create_accounts else "closed"


def _log_in(request: HttpRequest, sociallogin: Any) -> HttpResponse:
    record_authentication(request, sociallogin.user, "socialaccount")
    ours = Login(
        user=sociallogin.user,
        redirect_url=sociallogin.get_redirect_url(request),
        # Kept while a second factor is asked for.
        signal_kwargs={UNTIL: sociallogin.state.get(UNTIL)},
    )
    return perform_login(request, ours)


def read_email(claims: dict[str, Any]) -> str:
    """Return the address that the provider vouches for, or ""."""
    vouched = claims.get("email_verified") is True
    return check_email(claims.get("email")) if vouched else ""


def check_email(email: object) -> str:
    """Return a valid e-mail address unchanged, and "" for anything else."""
    if not isinstance(email, str):
        return ""
    try:
        validate_email(email)
    except ValidationError:
        return ""
    return email


def find_free_name(wished: object) -> str:
    """Return a free user name close to the wished one.

    A name that looks like that of another user counts as taken.
    """
    letters = re.sub(r"[^\w.@+-]", "", wished if isinstance(wished, str) else "")
    stem = letters[: MOST_OF_NAME - 8] or "user"
    # Few enough for one statement; the last one is random, so hardly ever taken.
    ends = [*range(2, MOST_NUMBERED + 1), get_random_string(7, digits)]
    names = [letters[:MOST_OF_NAME] or "user", *(f"{stem}-{end}" for end in ends)]
    return next(iter(find_free_names(names)), names[-1])
