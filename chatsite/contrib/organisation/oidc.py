"""The log-in by OpenID Connect: allauth's views, with a nonce and a check of the token.

No form of this site posts to another one.
"""

import secrets
from threading import BoundedSemaphore
from typing import Any

import requests
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.views import (
    OpenIDConnectOAuth2Adapter,
)
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from . import tokens
from .adapters import find_target, read_email, refuse_login
from .configuration import OidcProvider
from .membership import find_claim, read_groups
from .tokens import TokenError, find_provider

# Requests of this process that may wait for a provider at once; the other threads stay
# free for other pages.
_at_once = BoundedSemaphore(2)


class OidcAdapter(OpenIDConnectOAuth2Adapter):
    """The adapter of allauth for one request."""

    # The nonce in the state that the callback names.
    nonce = ""

    @property
    def ours(self) -> OidcProvider:
        found = find_provider(self.provider_id)
        if not isinstance(found, OidcProvider):
            raise TokenError("provider")
        return found

    @property
    def openid_config(self) -> dict[str, Any]:
        return tokens.read_configuration(self.ours)

    def complete_login(
        self, request: HttpRequest, app: Any, token: Any, **kwargs: Any
    ) -> Any:
        provider, given = self.ours, kwargs["response"]
        claims = tokens.read_claims(provider, given, self.nonce)
        claimed = find_claim(claims, provider.groups_claim)
        request.signin_groups = read_groups(provider, claimed)
        request.signin_token = given.get("refresh_token", "")
        if provider.recheck_seconds and not request.signin_token:
            raise TokenError("no refresh token")
        # Only these claims are stored; others can be long and personal.
        kept = {
            "sub": str(claims["sub"]),
            "name": claims.get(provider.username_claim, ""),
            "address": read_email(claims),
        }
        return self.get_provider().sociallogin_from_response(request, kept)


class OidcCallbackView(OAuth2CallbackView):
    def _get_state(self, request: HttpRequest, provider: Any) -> Any:
        state, response = super()._get_state(request, provider)
        self.adapter.nonce = (state or {}).get("nonce", "")
        return state, response


def _make_adapter(request: HttpRequest, provider_id: str) -> OidcAdapter:
    if not isinstance(find_provider(provider_id), OidcProvider):
        raise Http404
    return OidcAdapter(request, provider_id)


def lead_to_provider(request: HttpRequest, provider_id: str, process: str) -> Any:
    """Return a page that opens the provider by itself.

    The CSP does not allow a form to post to another site.
    """
    adapter = _make_adapter(request, provider_id)
    nonce = secrets.token_urlsafe(24)
    app = adapter.get_provider()
    if not _at_once.acquire(timeout=1):
        return refuse_login(request, "busy", adapter.ours)
    try:
        answer = app.redirect(
            request,
            process,
            next_url=find_target(request),
            auth_params={"nonce": nonce},
            nonce=nonce,
        )
    except (OAuth2Error, requests.RequestException) as error:
        return refuse_login(request, type(error).__name__, adapter.ours)
    finally:
        _at_once.release()
    if not answer.has_header("Location"):
        return answer
    values = {"provider": adapter.ours, "url": answer["Location"]}
    return render(request, "organisation/leaving.html", values)


@never_cache
@require_POST
def begin_login(request: HttpRequest, provider_id: str) -> HttpResponse:
    return lead_to_provider(request, provider_id, "login")


@never_cache
@require_safe
def finish_login(request: HttpRequest, provider_id: str) -> HttpResponse:
    adapter = _make_adapter(request, provider_id)
    told = request.GET.get("iss")
    if told and told.rstrip("/") != adapter.ours.issuer.rstrip("/"):
        return refuse_login(request, "issuer", adapter.ours)
    if not _at_once.acquire(timeout=1):
        return refuse_login(request, "busy", adapter.ours)
    try:
        return OidcCallbackView.adapter_view(adapter)(request)
    except (KeyError, TypeError, ValueError) as error:
        # The answer does not have the form that the protocol demands.
        return refuse_login(request, type(error).__name__, adapter.ours)
    finally:
        _at_once.release()
