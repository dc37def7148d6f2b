"""The documents that a provider publishes, and the check of its ID tokens.

allauth does not check the signature and the nonce of a token, as it has fetched it over
TLS. They are checked here: an answer can pass a proxy of the company, and a token that
was issued for another log-in must not open this one.
"""

import json
from collections.abc import Callable
from threading import Lock
from typing import Any

import jwt
import requests
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from cachetools import TTLCache, cached
from django.conf import settings
from django.utils.crypto import constant_time_compare

from chatsite.strict_json import make_object

from .configuration import IdentityProvider, OidcProvider

# Signatures with a key of the provider; no shared secret, and never `none`.
ALGORITHMS = [
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
]
REQUIRED = ["iss", "sub", "aud", "exp", "iat"]
# In seconds: how long published documents are cached, and the clock difference that
# is accepted.
KEPT, LEEWAY = 600.0, 30
MOST_BYTES = 2_000_000
# Entries of the cache: more providers than a site has.
MOST_PROVIDERS = 1_000


class TokenError(OAuth2Error):
    """An answer of a provider that proves nothing; the message is the reason."""


def _keep_published(read: Callable[[OidcProvider], dict[str, Any]]) -> Any:
    """Cache a document of each provider for this process, for ten minutes.

    A failed read is not cached, so the next request tries again.
    """
    keep = TTLCache(MOST_PROVIDERS, KEPT)
    return cached(keep, key=lambda provider: provider.id, lock=Lock())(read)


@_keep_published
def read_configuration(provider: OidcProvider) -> dict[str, Any]:
    """Return the discovery document of the provider.

    Raises TokenError, requests.RequestException.
    """
    issuer = provider.issuer.rstrip("/")
    read = fetch_json(f"{issuer}/.well-known/openid-configuration")
    if str(read.get("issuer", "")).rstrip("/") != issuer:
        raise TokenError("issuer of the configuration")
    return read


@_keep_published
def _read_keys(provider: OidcProvider) -> dict[str, jwt.PyJWK]:
    url = read_configuration(provider)["jwks_uri"]
    keys = jwt.PyJWKSet.from_dict(fetch_json(url)).keys
    return {key.key_id or "": key for key in keys}


def find_key(provider: OidcProvider, kid: str | None) -> jwt.PyJWK:
    """Return the provider's key with this id.

    An unknown id may be that of a new key, so the keys are then fetched again. Raises
    TokenError, requests.RequestException.
    """
    keys = _read_keys(provider)
    if kid not in keys:
        # Tokens come only from the provider itself, so no attacker can trigger this.
        with _read_keys.cache_lock:
            _read_keys.cache.pop(provider.id, None)
        keys = _read_keys(provider)
    if kid is None and len(keys) == 1:
        return next(iter(keys.values()))
    if kid not in keys:
        raise TokenError("key")
    return keys[kid]


def fetch(url: str, **headers: str) -> bytes:
    """Return the body that a provider serves at this URL.

    Raises TokenError if it exceeds two million bytes, requests.RequestException.
    """
    with get_adapter().get_requests_session() as session:
        response = session.get(url, headers=headers, stream=True)
        response.raise_for_status()
        return _read_bounded(response)


def fetch_json(url: str, **headers: str) -> dict[str, Any]:
    return _parse_object(fetch(url, **headers))


def read_json(response: requests.Response) -> dict[str, Any]:
    """Return the JSON object of a streamed response. Raises TokenError."""
    return _parse_object(_read_bounded(response))


def _read_bounded(response: requests.Response) -> bytes:
    text = response.raw.read(MOST_BYTES + 1, decode_content=True)
    if len(text) > MOST_BYTES:
        raise TokenError("size")
    return text


def _parse_object(text: bytes) -> dict[str, Any]:
    try:
        read = json.loads(text, object_pairs_hook=make_object)
    except ValueError:
        raise TokenError("JSON") from None
    if not isinstance(read, dict):
        raise TokenError("JSON")
    return read


def read_claims(
    provider: OidcProvider, given: dict[str, Any], nonce: str | None = None
) -> dict[str, Any]:
    """Return the claims of a user from the ID token and, if needed, from userinfo.

    With a nonce, an ID token for the log-in of this nonce is required. Without one, for
    a user who is logged in already, the ID token may be missing. Raises TokenError,
    requests.RequestException.
    """
    claims: dict[str, Any] = {}
    id_token = given.get("id_token")
    if isinstance(id_token, str):
        claims = read_id_token(provider, id_token, nonce)
    elif nonce is not None:
        raise TokenError("missing")
    if claims and not provider.userinfo:
        return claims
    url = read_configuration(provider)["userinfo_endpoint"]
    told = fetch_json(url, Authorization=f"Bearer {given['access_token']}")
    if claims and told.get("sub") != claims["sub"]:
        raise TokenError("subject")
    return {**told, **claims}


def read_id_token(
    provider: OidcProvider, token: str, nonce: str | None
) -> dict[str, Any]:
    """Return the claims of an ID token after all its checks.

    The provider must have issued it for this site and, if a nonce is given, for the
    log-in of this nonce. Raises TokenError, requests.RequestException.
    """
    try:
        header = jwt.get_unverified_header(token)
        if header.get("alg") not in ALGORITHMS:
            raise TokenError("algorithm")
        claims = jwt.decode(
            token,
            find_key(provider, header.get("kid")),
            algorithms=ALGORITHMS,
            audience=provider.client_id,
            issuer=read_configuration(provider)["issuer"],
            leeway=LEEWAY,
            options={"require": REQUIRED},
        )
    except jwt.PyJWTError as error:
        raise TokenError(type(error).__name__) from None
    told = str(claims.get("nonce", ""))
    if nonce is not None and not constant_time_compare(told, nonce):
        raise TokenError("nonce")
    parties = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
    if len(parties) > 1 and claims.get("azp") != provider.client_id:
        raise TokenError("audience")
    return claims


def find_provider(provider_id: str) -> IdentityProvider | None:
    return settings.SIGNIN_PROVIDERS.get(provider_id)
