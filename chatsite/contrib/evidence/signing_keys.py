"""The key pairs of the site: made, replaced, retired, published, and used to sign."""

import base64
import hashlib
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone

from . import verify
from .models import SigningKey

SIGNATURE = "windowpane_signature"
# RFC 8785 for what the site collects: its names are ASCII, its numbers small and whole.
dump_canonical = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False
).encode


class NoKeyError(Exception):
    """The site has no key that can sign."""


def name_site(request: HttpRequest) -> str:
    """Return the origin that signs: the first one of SITE_ORIGINS."""
    if settings.SITE_ORIGINS:
        return settings.SITE_ORIGINS[0].rstrip("/")
    return request.build_absolute_uri("/").rstrip("/")


def format_time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def make_key_pair() -> SigningKey:
    private = Ed25519PrivateKey.generate()
    public = private.public_key().public_bytes_raw()
    return SigningKey.objects.create(
        kid=hashlib.sha256(public).hexdigest()[:16],
        public=public.hex(),
        private=_derive_cipher().encrypt(private.private_bytes_raw()).decode(),
        created_at=timezone.now().replace(microsecond=0),
    )


def retire_keys(kids: Iterable[str]) -> int:
    """Retire keys: their private parts are erased."""
    rows = SigningKey.objects.filter(kid__in=kids, retired_at=None)
    return rows.update(retired_at=timezone.now(), private="")


@transaction.atomic
def rotate_keys() -> None:
    """Make a new key and retire the others."""
    retire_keys(SigningKey.objects.values_list("kid", flat=True))
    make_key_pair()


def publish_keys(site: str) -> dict[str, Any]:
    """Return the public keys as a JSON Web Key Set, with their times."""
    return {
        "site": site,
        "keys": [
            {
                **{"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig"},
                "kid": row.kid,
                "x": _encode(bytes.fromhex(row.public)),
                "created_at": format_time(row.created_at),
                "retired_at": row.retired_at and format_time(row.retired_at),
            }
            # A damaged row is no key, and does not hide the others.
            for row in SigningKey.objects.filter(public__regex="^[0-9a-f]{64}$")
        ],
    }


def dump_keys(site: str) -> str:
    """Return the public keys as JSON; the first call makes the site's first key."""
    if not SigningKey.objects.exists():
        make_key_pair()
    return json.dumps(publish_keys(site))


def sign_file(file: dict[str, Any], site: str) -> bytes:
    """Return the canonical JSON of a file with its signature.

    The first file makes the site's first key. Raises NoKeyError if every key is
    retired, or was encrypted with another SECRET_KEY.
    """
    if not SigningKey.objects.exists():
        make_key_pair()
    row = SigningKey.objects.filter(retired_at=None).last()
    if row is None:
        raise NoKeyError
    try:
        private = _derive_cipher().decrypt(row.private.encode())
    except InvalidToken as error:
        raise NoKeyError from error
    text = dump_canonical(file)
    signature = {
        **{"alg": "Ed25519", "kid": row.kid, "site": site, "value": ""},
        "signed_at": format_time(timezone.now()),
        "sha256": verify.digest(text),
        "parts": verify.digest_parts(file, dump_canonical),
    }
    data = dump_canonical(signature).encode()
    signature["value"] = Ed25519PrivateKey.from_private_bytes(private).sign(data).hex()
    # Its name is the last one in the canonical order.
    return f'{text[:-1]},"{SIGNATURE}":{dump_canonical(signature)}}}'.encode()


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _derive_cipher() -> Fernet:
    # SIGNING_KEY stays valid when SECRET_KEY changes.
    key = settings.SIGNING_KEY or settings.SECRET_KEY
    derived = hashlib.sha256(f"chatsite.contrib.evidence:{key}".encode()).digest()
    return Fernet(base64.urlsafe_b64encode(derived))
