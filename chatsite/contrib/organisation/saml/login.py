"""The log-in by SAML: allauth's flow, but no unchecked answer is stored.

An answer is a form that another site posts, so browsers send no cookie of this site
with it, and the session that asked for it is unknown. It is checked at once, without
trust, and its statements go in a signed cookie, valid for two minutes, to a page that
browsers open with the session. The site stores nothing of it.
"""

import logging
import time
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import requests
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.helpers import complete_social_login
from allauth.socialaccount.providers.saml.provider import SAMLProvider
from django.conf import settings
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe
from onelogin.saml2.auth import OneLogin_Saml2_Auth
from onelogin.saml2.constants import OneLogin_Saml2_Constants as Names
from onelogin.saml2.settings import OneLogin_Saml2_Settings

from ..adapters import (
    MOST_OF_NAME,
    UNTIL,
    check_email,
    find_target,
    log_refusal,
    refuse_login,
    show_refusal,
)
from ..configuration import SamlProvider
from ..membership import read_groups
from ..tokens import KEPT, TokenError, fetch, find_provider
from .answers import AnswerError, SamlAnswer, read_saml_answer
from .metadata import Description, parse_metadata, read_description

logger = logging.getLogger(__name__)
COOKIE = "saml-answer"
# Seconds between the answer and the page that finishes the log-in.
COOKIE_AGE = 120
# Browsers drop cookies that are longer than 4,096 bytes with their name and attributes.
MOST_OF_COOKIE = 3_700
# Seconds until unreadable metadata is fetched again, because every visitor can trigger
# that, and until metadata that was read before is not trusted any more.
RETRY, STALE = 10.0, 86_400.0


@dataclass
class _ProviderCache:
    """The metadata of one provider, shared by all requests of this process."""

    description: Description | None = None
    read_at: float = float("-inf")
    tried_at: float = float("-inf")
    # Held by the thread that reads the metadata.
    lock: Any = field(default_factory=Lock)


_kept: dict[str, _ProviderCache] = {}


class SubjectProvider(SAMLProvider):
    """allauth's provider, with accounts found by the subject and by no attribute."""

    def extract_uid(self, data: dict[str, Any]) -> str:
        return data["sub"]

    def extract_extra_data(self, data: dict[str, Any]) -> dict[str, Any]:
        return data

    def extract_common_fields(self, data: dict[str, Any]) -> dict[str, Any]:
        return {}


def _find_saml_provider(provider_id: str) -> SamlProvider:
    found = find_provider(provider_id)
    if not isinstance(found, SamlProvider):
        raise Http404
    return found


def _make_saml_app(request: HttpRequest, provider: SamlProvider) -> SubjectProvider:
    app = get_adapter().get_app(request, SAMLProvider.id, client_id=provider.id)
    return SubjectProvider(request, app=app)


def find_description(provider: SamlProvider) -> Description:
    """Return the provider's metadata, at most ten minutes old.

    While the provider does not answer, metadata of the last day is used: an outage does
    not change its keys. Raises AnswerError.
    """
    kept = _kept.setdefault(provider.id, _ProviderCache())
    now = time.monotonic()
    known = kept.description if now - kept.read_at < STALE else None
    is_due = now - kept.read_at > KEPT and now - kept.tried_at > RETRY
    # A request that waits for a provider occupies a thread, so only one waits; the
    # others use the metadata that is cached.
    if is_due and kept.lock.acquire(timeout=0 if known else 1):
        try:
            kept.tried_at = time.monotonic()
            known = kept.description = _read_now(provider)
            kept.read_at = time.monotonic()
        except (requests.RequestException, TokenError, ValueError) as error:
            logger.warning("metadata of %s: %s", provider.id, type(error).__name__)
        finally:
            kept.lock.release()
    if known is None:
        raise AnswerError("metadata")
    return known


def _read_now(provider: SamlProvider) -> Description:
    if not provider.metadata_url:
        return read_description(provider)
    return parse_metadata(fetch(provider.metadata_url), provider.entity_id)


def _make_settings(
    request: HttpRequest, provider: SamlProvider, description: Description | None
) -> OneLogin_Saml2_Settings:
    """Return the settings of python3-saml.

    Without a description they serve only for this site's own metadata.
    """
    address, metadata = (
        request.build_absolute_uri(reverse(name, args=[provider.id]))
        for name in ("signin-saml-answer", "signin-saml-metadata")
    )
    values: dict[str, Any] = {
        "strict": True,
        "sp": {
            "entityId": provider.site_entity_id or metadata,
            "assertionConsumerService": {
                "url": address,
                "binding": Names.BINDING_HTTP_POST,
            },
            "NameIDFormat": Names.NAMEID_PERSISTENT,
        },
        "security": {
            "requestedAuthnContext": False,
            "rejectDeprecatedAlgorithm": True,
            "wantAttributeStatement": False,
            "allowRepeatAttributeName": True,
            "allowSingleLabelDomains": True,
        },
    }
    if description:
        values["idp"] = description.as_settings()
    return OneLogin_Saml2_Settings(values, sp_validation_only=description is None)


def lead_to_saml(request: HttpRequest, provider_id: str, process: str) -> HttpResponse:
    """Return a page that opens the provider by itself, as for OpenID Connect."""
    provider = _find_saml_provider(provider_id)
    try:
        described = find_description(provider)
    except AnswerError as error:
        return refuse_login(request, f"saml {error}", provider)
    auth = OneLogin_Saml2_Auth({}, _make_settings(request, provider, described))
    # RelayState is ignored when it comes back, so none is sent.
    url = auth.login(return_to="")
    _make_saml_app(request, provider).stash_redirect_state(
        request,
        process,
        next_url=find_target(request),
        state_id=auth.get_last_request_id(),
    )
    return render(
        request, "organisation/leaving.html", {"provider": provider, "url": url}
    )


@never_cache
@require_POST
def begin_saml(request: HttpRequest, provider_id: str) -> HttpResponse:
    return lead_to_saml(request, provider_id, "login")


# CSRF-exempt, because another site posts the form: only what the provider has signed is
# trusted, and no user is logged in yet.
@never_cache
@csrf_exempt
@require_POST
def receive_answer(request: HttpRequest, provider_id: str) -> HttpResponse:
    provider = _find_saml_provider(provider_id)
    try:
        told = _make_settings(request, provider, find_description(provider))
        answer = read_saml_answer(told, request.POST.get("SAMLResponse", ""))
        kept = _keep_claims(provider, answer)
    except AnswerError as error:
        reason = f"saml {error}"
        log_refusal(reason, provider)
        kept = _sign_for(provider, {"refused": reason})
    # The reason is shown on the next page, because the language is in a cookie, too.
    response = HttpResponseRedirect(reverse("signin-saml-finish", args=[provider.id]))
    response.status_code = 303
    response.set_cookie(
        COOKIE,
        kept,
        max_age=COOKIE_AGE,
        path=response.url,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
    return response


def _keep_claims(provider: SamlProvider, answer: SamlAnswer) -> str:
    """Return the signed claims of an answer for the cookie.

    They are its subject and the attributes and groups that the file of providers names.
    Raises AnswerError if they do not fit into a cookie.
    """
    attributes = answer.attributes
    name, email = (
        next(iter(attributes.get(wanted, [])), "")
        for wanted in (provider.username_attribute, provider.email_attribute)
    )
    found = read_groups(provider, attributes.get(provider.groups_attribute))
    groups = None if found is None else sorted(found)
    claims = {
        "sub": answer.subject,
        "name": name[:MOST_OF_NAME],
        "address": check_email(email),
    }
    values = {
        **{"to": answer.request_id, "claims": claims, "groups": groups},
        "until": answer.until,
    }
    if len(kept := _sign_for(provider, values)) > MOST_OF_COOKIE:
        raise AnswerError("groups_size")
    return kept


def _sign_for(provider: SamlProvider, values: dict[str, Any]) -> str:
    return signing.dumps(values, salt=f"{COOKIE} {provider.id}", compress=True)


@never_cache
@require_safe
def finish_saml(request: HttpRequest, provider_id: str) -> HttpResponse:
    provider = _find_saml_provider(provider_id)
    try:
        kept = signing.loads(
            request.COOKIES.get(COOKIE, ""),
            salt=f"{COOKIE} {provider.id}",
            max_age=COOKIE_AGE,
        )
    except signing.BadSignature:
        return refuse_login(request, "saml cookie", provider)
    if reason := kept.get("refused"):
        response = show_refusal(request, reason, provider)
    else:
        response = _complete(request, provider, kept)
    response.delete_cookie(COOKIE, path=request.path, samesite="Lax")
    return response


def _complete(
    request: HttpRequest, provider: SamlProvider, kept: dict[str, Any]
) -> HttpResponse:
    app = _make_saml_app(request, provider)
    try:
        # The state is removed from this session: an answer opens once, and only in the
        # browser that asked for it.
        state = app.unstash_redirect_state(request, kept["to"])
    except PermissionDenied:
        return refuse_login(request, "saml state", provider)
    request.signin_groups = kept["groups"]
    # SAML has no token for rechecks.
    request.signin_token = ""
    login = app.sociallogin_from_response(request, kept["claims"])
    ends = [kept["until"]] if kept["until"] else []
    if provider.session_seconds:
        ends.append(int(time.time()) + provider.session_seconds)
    login.state = {**state, UNTIL: min(ends, default=None)}
    return complete_social_login(request, login)


@require_safe
def show_metadata(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Return the metadata of this site, for the operators of the provider."""
    provider = _find_saml_provider(provider_id)
    told = _make_settings(request, provider, None)
    return HttpResponse(told.get_sp_metadata(), "application/samlmetadata+xml")
