"""Background checks that a provider still knows an account, and its groups.

They use the refresh token of the log-in (RFC 6749, 6), without the user. A provider
that does not know the user any more answers `invalid_grant`: then the account is
deactivated until its next log-in. A provider that can't be reached changes nothing, so
an outage locks out no account.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeGuard

import requests
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.models import SocialAccount
from channels.db import database_sync_to_async
from cryptography.fernet import InvalidToken
from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from prometheus_client import Counter

from chatsite.turns import runner

from . import encryption, membership
from .configuration import IdentityProvider, OidcProvider
from .models import Membership
from .tokens import (
    TokenError,
    find_provider,
    read_claims,
    read_configuration,
    read_json,
)

logger = logging.getLogger(__name__)

# Accounts that one process takes at once; another process can take the rest.
MOST_TAKEN = 20
# The exceptions that a malformed answer raises.
BAD_ANSWERS = (TokenError, KeyError, TypeError, ValueError)
RECHECKS = Counter("windowpane_rechecks", "Accounts asked about.", ["outcome"])


class UnknownError(Exception):
    """The provider does not vouch for the user any more."""


@dataclass(frozen=True, slots=True)
class Due:
    """One account to ask about; `token` is encrypted, as stored."""

    row_id: int
    provider: OidcProvider
    token: str
    subject: str


def is_asked(provider: IdentityProvider | None) -> TypeGuard[OidcProvider]:
    """Return whether the provider is asked again.

    The operator chooses it with `recheck_seconds`; SAML has no token for it.
    """
    return isinstance(provider, OidcProvider) and provider.recheck_seconds > 0


def keep_token(user: AbstractBaseUser, provider: IdentityProvider, token: str) -> None:
    """Store the refresh token for rechecks, if the provider is asked again."""
    if is_asked(provider):
        rows = Membership.objects.filter(user=user, provider=provider.id)
        _keep(rows, provider, token)


def _keep(rows: QuerySet[Membership], provider: OidcProvider, token: str) -> None:
    next_at = Now() + timedelta(seconds=provider.recheck_seconds)
    rows.update(
        refresh_token=encryption.seal(encryption.TOKENS, token), recheck_at=next_at
    )


def forget_tokens(rows: QuerySet[Membership]) -> None:
    rows.update(refresh_token="", recheck_at=None)


def find_due() -> QuerySet[Membership]:
    return Membership.objects.filter(recheck_at__lte=Now(), user__is_active=True)


def take_due() -> list[Due]:
    """Claim the next due accounts for this process.

    No other process asks about them before they are due again.
    """
    taken = []
    for row in find_due().order_by("recheck_at")[:MOST_TAKEN]:
        # Matches no row once another process has taken it.
        own = Membership.objects.filter(pk=row.pk, recheck_at__lte=Now())
        provider = find_provider(row.provider)
        account = SocialAccount.objects.filter(user=row.user_id, provider=row.provider)
        subject = account.values_list("uid", flat=True).first()
        if not is_asked(provider) or subject is None:
            # Rechecks were switched off, or the account is not connected any more.
            forget_tokens(own)
        elif own.update(recheck_at=Now() + timedelta(seconds=provider.recheck_seconds)):
            taken.append(Due(row.pk, provider, row.refresh_token, subject))
    return taken


def ask_provider(due: Due) -> tuple[set[str] | None, str]:
    """Return the current groups, None if unknown, and the next refresh token.

    Reads nothing of the database. Raises UnknownError, TokenError,
    requests.RequestException.
    """
    try:
        token = encryption.open_sealed(encryption.TOKENS, due.token)
    except InvalidToken:
        # The site's key has changed, so no provider can be asked about this user.
        raise UnknownError from None
    given = _refresh(due.provider, token)
    try:
        groups = _read_groups(due, given)
    except (*BAD_ANSWERS, OSError) as error:
        # The old token may be invalid by now, so the new one has to be kept.
        _note_failure(due.provider, error)
        groups = None
    return groups, given.get("refresh_token") or token


def _read_groups(due: Due, given: dict[str, Any]) -> set[str]:
    claims = read_claims(due.provider, given)
    if str(claims.get("sub", "")) != due.subject:
        raise TokenError("subject")
    claimed = membership.find_claim(claims, due.provider.groups_claim)
    groups = membership.read_groups(due.provider, claimed)
    if groups is None:
        raise TokenError("groups unknown")
    return groups


def _refresh(provider: OidcProvider, token: str) -> dict[str, Any]:
    published = read_configuration(provider)
    form = {"grant_type": "refresh_token", "refresh_token": token}
    named = {"client_id": provider.client_id, "client_secret": provider.secret}
    # The same choice as allauth makes for the log-in.
    methods = published.get("token_endpoint_auth_methods_supported", [])
    is_basic = "client_secret_post" not in methods and "client_secret_basic" in methods
    with get_adapter().get_requests_session() as session:
        response = session.request(
            "POST",
            published["token_endpoint"],
            data=form if is_basic else {**form, **named},
            auth=(provider.client_id, provider.secret) if is_basic else None,
            stream=True,
            allow_redirects=False,
        )
        given = read_json(response)
    if given.get("error") == "invalid_grant":
        raise UnknownError
    if response.status_code != requests.codes.ok or "access_token" not in given:
        raise TokenError(f"status {response.status_code}")
    return given


@transaction.atomic
def settle(due: Due, answer: tuple[set[str] | None, str] | None) -> None:
    """Apply the answer of a provider to its account.

    None: the provider does not know the user any more. Does nothing if the user has
    logged in again or was disconnected, deactivated or erased meanwhile. Unknown groups
    change nothing.
    """
    rows = Membership.objects.filter(pk=due.row_id, refresh_token=due.token)
    row = rows.filter(user__is_active=True).select_for_update(of=("self",)).first()
    if row is None:
        return
    groups = None if answer is None else answer[0]
    if answer is not None and groups is None:
        _keep(rows, due.provider, answer[1])
    elif membership.apply_groups(row.user, due.provider, groups) and answer is not None:
        _keep(rows, due.provider, answer[1])
        RECHECKS.labels("kept").inc()
    else:
        forget_tokens(rows)
        RECHECKS.labels("left").inc()
        logger.info("account over: user=%s provider=%s", row.user_id, row.provider)


async def recheck_people(taken: Sequence[Due]) -> None:
    """Ask about the taken accounts one after the other.

    So a slow provider occupies only one thread of this process. A provider that does
    not answer is not asked about the rest of them.
    """
    silent: set[str] = set()
    for due in taken:
        if due.provider.id in silent:
            RECHECKS.labels("failed").inc()
            continue
        try:
            answer = await asyncio.to_thread(ask_provider, due)
        except UnknownError:
            answer = None
        except (*BAD_ANSWERS, OSError) as error:
            # All exceptions of requests are subclasses of OSError.
            if isinstance(error, requests.RequestException):
                silent.add(due.provider.id)
            _note_failure(due.provider, error)
            continue
        await database_sync_to_async(settle)(due, answer)


def _note_failure(provider: IdentityProvider, error: Exception) -> None:
    reason = str(error) if isinstance(error, TokenError) else type(error).__name__
    RECHECKS.labels("failed").inc()
    logger.warning("not rechecked: provider=%s reason=%s", provider.id, reason)


async def recheck_all() -> None:
    while taken := await database_sync_to_async(take_due)():
        await recheck_people(taken)


async def sweep_due_accounts() -> None:
    """Recheck all due accounts in a separate task.

    So a provider that does not answer delays no other background work.
    """
    runner.spawn_task(recheck_all(), "rechecks of accounts")


def is_wanted() -> bool:
    return any(map(is_asked, settings.SIGNIN_PROVIDERS.values()))
