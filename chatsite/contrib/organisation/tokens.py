"""What a provider publishes about itself, and whether an ID token is its word.

allauth leaves the signature and the nonce of a token unchecked, as it has fetched it
over TLS. Here they are checked: an answer can come through a proxy of the company, and
a token that was made for another log-in must not open this one.
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

# With a key of the provider's own; none with a shared secret, and not `none`.
ALGORITHMS = [
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
]
REQUIRED = ["iss", "sub", "aud", "exp", "iat"]
# Seconds: how long what it publishes is kept, and how far clocks may be apart.
KEPT, LEEWAY = 600.0, 30
MOST_BYTES = 2_000_000
# Providers of whom something is kept: more than a site has.
MOST_PROVIDERS = 1_000


class TokenError(OAuth2Error):
    """An answer of a provider that proves nothing; the word says why."""


def _keep_published(read: Callable[[OidcProvider], dict[str, Any]]) -> Any:
    """For all requests of this process; what could not be read is tried again."""
    keep = TTLCache(MOST_PROVIDERS, KEPT)
    return cached(keep, key=lambda provider: provider.id, lock=Lock())(read)


@_keep_published
def read_configuration(provider: OidcProvider) -> dict[str, Any]:
    """Its discovery document. Raises TokenError, requests.RequestException."""
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
    """A key that is not known may be a new one: then they are read again."""
    keys = _read_keys(provider)
    if kid not in keys:
        # Only the provider itself sends tokens here, so no stranger can ask for this.
        with _read_keys.cache_lock:
            _read_keys.cache.pop(provider.id, None)
        keys = _read_keys(provider)
    if kid is None and len(keys) == 1:
        return next(iter(keys.values()))
    if kid not in keys:
        raise TokenError("key")
    return keys[kid]


def fetch(url: str, **headers: str) -> bytes:
    """What a provider serves there. Raises TokenError, requests.RequestException."""
    with get_adapter().get_requests_session() as session:
        response = session.get(url, headers=headers, stream=True)
        response.raise_for_status()
        return _read_bounded(response)


def fetch_json(url: str, **headers: str) -> dict[str, Any]:
    return _parse_object(fetch(url, **headers))


def read_json(response: requests.Response) -> dict[str, Any]:
    """The object of an answer that was begun as a stream. Raises TokenError."""
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
    """What the provider says of a person with the tokens that it has given: for the
    log-in of this nonce, or without one for someone who is here already, which need
    not come with an ID token. Raises TokenError, requests.RequestException."""
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
    """The claims of a token that the provider made for this site, and for the log-in of
    this nonce, if there is one. Raises TokenError, requests.RequestException."""
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
