"""The file of SIGNIN_PROVIDERS, and the settings of allauth that come of it. Loaded
with the settings, so it knows none of them.
"""

import os
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
)

Right = Literal["metadata", "content", "export", "purge"]
FOLDER = "chatsite.signin.organisation"
LEAST_RECHECK_SECONDS = 30


def _check_issuer(url: str) -> str:
    parts = urlsplit(url)
    is_local = parts.hostname in ("127.0.0.1", "localhost", "::1")
    if not parts.hostname or parts.scheme not in ("https", "http"):
        raise ValueError("write it in full, with https://")
    if parts.scheme == "http" and not is_local:
        raise ValueError("use https://, or anyone on the way can log in as anyone")
    return url


class Provider(BaseModel):
    """One provider of identities, as the operator describes it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(pattern=r"^[a-z0-9-]{1,40}$")
    name: str = Field(min_length=1, max_length=80)
    issuer: Annotated[str, AfterValidator(_check_issuer)]
    client_id: str = Field(min_length=1)
    client_secret: str = ""
    # The environment variable that the secret is in, instead.
    client_secret_env: str = ""
    scopes: list[str] = ["openid", "profile", "email"]
    username_claim: str = "preferred_username"
    groups_claim: str = "groups"
    # Whether the claims are those of its userinfo, too, and not of the ID token alone.
    userinfo: bool = False
    # Groups of which a person has to be in one to have an account; none: all have.
    members: list[str] = []
    # The permissions of staff by group.
    staff: dict[str, list[Right]] = {}
    # Whether one who logs in for the first time gets an account; else only those can
    # log in who have connected theirs.
    create_accounts: bool = True
    # After how many seconds it is asked again about who has logged in; 0: never.
    recheck_seconds: int = 0

    @field_validator("scopes")
    @classmethod
    def with_openid(cls, scopes: list[str]) -> list[str]:
        return scopes if "openid" in scopes else ["openid", *scopes]

    @field_validator("recheck_seconds")
    @classmethod
    def _not_all_the_time(cls, seconds: int) -> int:
        if seconds and seconds < LEAST_RECHECK_SECONDS:
            raise ValueError(f"0, or at least {LEAST_RECHECK_SECONDS}")
        return seconds

    @property
    def secret(self) -> str:
        return os.environ.get(self.client_secret_env, "") or self.client_secret


class ProviderFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    providers: list[Provider] = Field(min_length=1)


def read_providers(path: str) -> dict[str, Provider]:
    """The providers by their ids. Raises ImproperlyConfigured, as one sentence."""
    try:
        read = ProviderFile.model_validate_json(Path(path).read_bytes())
    except OSError as error:
        raise ImproperlyConfigured(
            f"SIGNIN_PROVIDERS names {path}, which can't be read: {error.strerror}."
        ) from None
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise ImproperlyConfigured(
            f"SIGNIN_PROVIDERS, {path}: {place}: {first['msg']}."
        ) from None
    found = {each.id: each for each in read.providers}
    if len(found) < len(read.providers):
        raise ImproperlyConfigured(
            f"SIGNIN_PROVIDERS, {path}: two providers have the same id."
        )
    return found


APPS = [
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
]
STAFF_MIDDLEWARE = f"{FOLDER}.second_factor.StaffSecondFactorMiddleware"


def list_apps(*, with_second_factor: bool) -> list[str]:
    return [*APPS, *(["allauth.mfa"] if with_second_factor else [])]


def make_settings(providers: dict[str, Provider]) -> dict[str, Any]:
    """Settings of allauth: it makes accounts of subjects of a provider and of nothing
    else, never of addresses, and sends no mail."""
    return {
        "ACCOUNT_ADAPTER": f"{FOLDER}.adapters.AccountAdapter",
        "ACCOUNT_EMAIL_VERIFICATION": "none",
        "ACCOUNT_EMAIL_NOTIFICATIONS": False,
        "ACCOUNT_SIGNUP_FIELDS": ["username*", "password1*"],
        "ACCOUNT_REAUTHENTICATION_REQUIRED": False,
        "MFA_ADAPTER": f"{FOLDER}.second_factor.MfaAdapter",
        "MFA_ALLOW_UNVERIFIED_EMAIL": True,
        "MFA_SUPPORTED_TYPES": ["totp", "recovery_codes", "webauthn"],
        # A code before and after the one of now: clocks of phones are off.
        "MFA_TOTP_TOLERANCE": 1,
        "SOCIALACCOUNT_ADAPTER": f"{FOLDER}.adapters.SocialAccountAdapter",
        "SOCIALACCOUNT_EMAIL_AUTHENTICATION": False,
        "SOCIALACCOUNT_EMAIL_VERIFICATION": "none",
        "SOCIALACCOUNT_STORE_TOKENS": False,
        "SOCIALACCOUNT_PROVIDERS": {
            "openid_connect": {"APPS": [_make_app(each) for each in providers.values()]}
        },
    }


def _make_app(provider: Provider) -> dict[str, Any]:
    return {
        "provider_id": provider.id,
        "name": provider.name,
        "client_id": provider.client_id,
        "secret": provider.secret,
        "settings": {
            "server_url": provider.issuer.rstrip("/"),
            "scope": provider.scopes,
            "oauth_pkce_enabled": True,
        },
    }
