"""For whom a gateway's key speaks: the person that a signed token names, or a header
where the operator believes it. One who is not known is refused, never guessed.
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
from chatsite.contrib.endpoint.models import ApiKey
from chatsite.contrib.endpoint.wires.errors import WireError
from chatsite.strict_json import make_object

# As Open WebUI sends it with FORWARD_USER_INFO_HEADER_JWT_SECRET: HS256, for minutes,
# with the e-mail address of the person.
TOKEN_HEADER = "x-openwebui-user-jwt"  # noqa: S105
MOST_CHARS = 4_096
# How far the clocks of two machines may be apart.
LEEWAY = 60


def apply_gateway_user(key: ApiKey, headers: Mapping[str, str]) -> None:
    """Let the key be the person's for this request. Raises WireError."""
    person = _find_gateway_user(key, headers) if key.owner.is_staff else None
    if person is None:
        detail = "This key sends for others, and doesn't say for which person here."
        raise WireError(403, "unknown_person", detail)
    key.gateway_user, key.owner = key.owner, person


def _find_gateway_user(
    key: ApiKey, headers: Mapping[str, str]
) -> AbstractBaseUser | None:
    people = get_user_model().objects.filter(is_active=True)
    if settings.GATEWAY_JWT_SECRET:
        claims = read_token(headers.get(TOKEN_HEADER, ""), find_token_secret(key))
        address = claims.get("email") if _is_for_site(claims.get("aud")) else None
        if not isinstance(address, str) or not address.strip():
            return None
        found = find_people(address.strip())
    elif settings.GATEWAY_USER_HEADER:
        name = headers.get(settings.GATEWAY_USER_HEADER.lower(), "")
        found = people.filter(username=name)[:2] if name else []
    else:
        return None
    # Two with one address could be either.
    return found[0] if len(found) == 1 else None


def find_token_secret(key: ApiKey) -> str:
    """Return what signs the tokens that come with this key. One of its own tells
    nothing of the others: who runs one gateway can't sign for the key of another."""
    shared = settings.GATEWAY_JWT_SECRET
    if not settings.GATEWAY_SECRET_PER_KEY:
        return shared
    return hmac.new(shared.encode(), key.sha256.encode(), hashlib.sha256).hexdigest()


def _is_for_site(audience: Any) -> bool:
    """Return whether a token may be used here: it names this site, or, where the
    operator does not ask for it, none."""
    own = settings.GATEWAY_JWT_AUDIENCE
    if audience is None:
        return not own
    named = audience if isinstance(audience, list) else [audience]
    return any(each in ([own] if own else settings.SITE_ORIGINS) for each in named)


def read_token(token: str, secret: str) -> dict[str, Any]:
    """What a token says that was signed with this secret and is still valid; else {}.
    The algorithm is ours to choose, not the token's."""
    signed, _, signature = token[:MOST_CHARS].rpartition(".")
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
