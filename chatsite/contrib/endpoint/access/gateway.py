"""The user of a request that a gateway sends.

A signed token names the user, or a header where the operator trusts it. An unknown user
is refused, never guessed.
"""

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.utils.crypto import constant_time_compare

from chatsite.accounts.names import find_people
from chatsite.contrib.endpoint.apis.errors import ApiError
from chatsite.contrib.endpoint.models import ApiKey
from chatsite.strict_json import make_object

# As Open WebUI sends it with FORWARD_USER_INFO_HEADER_JWT_SECRET: HS256, valid for
# minutes, with the e-mail address of the user.
TOKEN_HEADER = "x-openwebui-user-jwt"  # noqa: S105
MAX_CHARS = 4_096
# Seconds that the clocks of two machines may differ.
LEEWAY = 60


def apply_gateway_user(key: ApiKey, headers: Mapping[str, str]) -> None:
    """Make the key the user's for this request.

    Raise ApiError.
    """
    user = _find_gateway_user(key, headers) if key.owner.is_staff else None
    if user is None:
        detail = "A request with a gateway's key must name an active user of this site."
        raise ApiError(403, "unknown_person", detail)
    key.gateway_user, key.owner = key.owner, user


def _find_gateway_user(
    key: ApiKey, headers: Mapping[str, str]
) -> AbstractBaseUser | None:
    users = get_user_model().objects.filter(is_active=True)
    if settings.GATEWAY_JWT_SECRET:
        claims = read_token(headers.get(TOKEN_HEADER, ""), find_token_secret(key))
        address = claims.get("email") if _is_for_site(claims.get("aud")) else None
        if not isinstance(address, str) or not address.strip():
            return None
        found = find_people(address.strip())
    elif settings.GATEWAY_USER_HEADER:
        name = headers.get(settings.GATEWAY_USER_HEADER.lower(), "")
        found = users.filter(username=name)[:2] if name else []
    else:
        return None
    # Two users with the same address are ambiguous.
    return found[0] if len(found) == 1 else None


def find_token_secret(key: ApiKey) -> str:
    """Return the secret that signs the tokens sent with this key.

    A secret per key does not reveal the others: the operator of one gateway can't sign
    for the key of another.
    """
    shared = settings.GATEWAY_JWT_SECRET
    if not settings.GATEWAY_SECRET_PER_KEY:
        return shared
    return hmac.new(shared.encode(), key.sha256.encode(), hashlib.sha256).hexdigest()


def _is_for_site(audience: Any) -> bool:
    """Return whether the token's audience allows it here.

    It names this site, or is missing and the operator does not require it.
    """
    own = settings.GATEWAY_JWT_AUDIENCE
    if audience is None:
        return not own
    named = audience if isinstance(audience, list) else [audience]
    return any(each in ([own] if own else settings.SITE_ORIGINS) for each in named)


def read_token(token: str, secret: str) -> dict[str, Any]:
    """Return the claims of a valid token signed with this secret, or {}.

    This site chooses the algorithm, not the token.
    """
    signed, _, signature = token[:MAX_CHARS].rpartition(".")
    head, _, body = signed.partition(".")
    digest = hmac.new(
        secret.encode(), signed.encode("utf-8", "replace"), hashlib.sha256
    )
    written = base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()
    if not constant_time_compare(written, signature):
        return {}
    claims = _read_token_part(body)
    end = claims.get("exp")
    is_valid = isinstance(end, int | float) and time.time() < end + LEEWAY
    return claims if is_valid and _read_token_part(head).get("alg") == "HS256" else {}


def _read_token_part(part: str) -> dict[str, Any]:
    try:
        decoded = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
        value = json.loads(decoded, object_pairs_hook=make_object)
    except (binascii.Error, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
