"""The file of SIGNIN_PROVIDERS, and the settings of allauth that are made of it.

Imported while the settings load, so this module must not read them.
"""

import json
import os
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    field_validator,
    model_validator,
)

from chatsite.strict_json import RepeatedNameError, make_object

from .proxies import ALLOWED, are_named

Right = Literal["metadata", "content", "export", "purge"]
FOLDER = "chatsite.contrib.organisation"
LEAST_RECHECK_SECONDS = 30


def check_https_address(url: str) -> str:
    parts = urlsplit(url)
    is_local = parts.hostname in ("127.0.0.1", "localhost", "::1")
    if not parts.hostname or parts.scheme not in ("https", "http"):
        raise ValueError("write it in full, with https://")
    if parts.scheme == "http" and not is_local:
        raise ValueError(
            "use https://, or others on the network can log in as any user"
        )
    return url


Address = Annotated[str, AfterValidator(check_https_address)]


class IdentityProvider(BaseModel):
    """An identity provider, as the operator describes it."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    # The URL name of the view at which a log-in begins.
    begins_at: ClassVar[str]

    id: str = Field(pattern=r"^[a-z0-9-]{1,40}$")
    name: str = Field(min_length=1, max_length=80)
    # A user has to be in one of these groups; empty: all users have access.
    members: list[str] = []
    # The permissions of staff by group.
    staff: dict[str, list[Right]] = {}
    # Whether the first log-in creates an account; else only users who have connected
    # their account can log in.
    create_accounts: bool = True


class OidcProvider(IdentityProvider):
    """An identity provider that speaks OpenID Connect."""

    begins_at = "openid_connect_login"

    protocol: Literal["oidc"] = "oidc"
    issuer: Address
    client_id: str = Field(min_length=1)
    client_secret: str = ""
    # The environment variable that has the secret, instead of client_secret.
    client_secret_env: str = ""
    scopes: list[str] = ["openid", "profile", "email"]
    username_claim: str = "preferred_username"
    groups_claim: str = "groups"
    # Whether the claims of the userinfo endpoint are read besides the ID token.
    userinfo: bool = False
    # Seconds until the provider is asked again about an account; 0: never.
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


class SamlProvider(IdentityProvider):
    """An identity provider that speaks SAML 2.0, described by metadata or by fields."""

    begins_at = "signin-saml"

    protocol: Literal["saml"]
    metadata_file: str = ""
    metadata_url: Address | None = None
    # The provider's entity id; beside metadata, it selects one of several providers.
    entity_id: str = Field("", max_length=1024)
    sso_url: Address | None = None
    # Of its signing keys, as PEM or as the text between its first and last line.
    certificates: list[str] = []
    # The entity id of this site; else the address of its metadata.
    site_entity_id: str = Field("", max_length=1024)
    username_attribute: str = "uid"
    groups_attribute: str = "groups"
    # The attribute with an address that the provider vouches for, if there is one.
    email_attribute: str = ""
    # Seconds until a session that it began ends; 0: as other sessions do.
    session_seconds: int = Field(0, ge=0)

    @model_validator(mode="before")
    @classmethod
    def never_asked_again(cls, given: Any) -> Any:
        if "recheck_seconds" in given:
            raise ValueError(
                "recheck_seconds is for OpenID Connect, as SAML has no token with "
                "which it could be asked again; use session_seconds"
            )
        return given

    @model_validator(mode="after")
    def in_one_way(self) -> Self:
        by_hand = bool(self.sso_url or self.certificates)
        if bool(self.metadata_file) + bool(self.metadata_url) + by_hand != 1:
            raise ValueError(
                "give metadata_file, metadata_url, or entity_id, sso_url and "
                "certificates"
            )
        if by_hand and not (self.entity_id and self.sso_url and self.certificates):
            raise ValueError("entity_id, sso_url and certificates belong together")
        return self


def _read_protocol(value: Any) -> Any:
    if isinstance(value, dict):
        return value.get("protocol", "oidc")
    return value.protocol if isinstance(value, IdentityProvider) else "oidc"


AnyProvider = Annotated[
    Annotated[OidcProvider, Tag("oidc")] | Annotated[SamlProvider, Tag("saml")],
    Discriminator(
        _read_protocol,
        custom_error_type="protocol",
        custom_error_message="the protocol is oidc or saml",
    ),
]


class IdentityProviderFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    providers: list[AnyProvider] = Field(min_length=1)


def refuse_file(path: str, why: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"SIGNIN_PROVIDERS, {path}: {why}.")


def read_providers(path: str) -> dict[str, IdentityProvider]:
    """Return the providers by their ids.

    Raises ImproperlyConfigured, with a message of one sentence.
    """
    try:
        text = Path(path).read_bytes()
        read = IdentityProviderFile.model_validate_json(text)
        json.loads(text, object_pairs_hook=make_object)
    except RepeatedNameError as error:
        raise refuse_file(
            path, f"{str(error)!r} stands twice in one object; leave one of the two out"
        ) from None
    except OSError as error:
        raise ImproperlyConfigured(
            f"SIGNIN_PROVIDERS names {path}, which can't be read: {error.strerror}."
        ) from None
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        # The third part is the protocol, by which pydantic chose the model.
        place = ".".join(map(str, first["loc"][:2] + first["loc"][3:])) or "the file"
        raise refuse_file(path, f"{place}: {first['msg']}") from None
    found = {each.id: each for each in read.providers}
    if len(found) < len(read.providers):
        raise refuse_file(path, "two providers have the same id")
    for each in find_saml(found):
        try:
            # Imported only for SAML: other sites run without its libraries.
            import_module(f"{FOLDER}.saml.metadata").check_provider(each)
        except ImportError as error:
            raise refuse_file(
                path,
                f"{each.id} speaks SAML, which needs requirements/saml.lock ({error})",
            ) from None
        except ValueError as error:
            raise refuse_file(path, f"{each.id}: {error}") from None
    return found


def find_saml(providers: dict[str, IdentityProvider]) -> list[SamlProvider]:
    return [each for each in providers.values() if isinstance(each, SamlProvider)]


APPS = [
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
]
STAFF_MIDDLEWARE = f"{FOLDER}.second_factor.codes.StaffSecondFactorMiddleware"


def configure(site: dict[str, Any], file: str) -> None:
    """Add the apps, middleware and settings that the log-in settings need.

    `file` is the value of SIGNIN_PROVIDERS, or "".
    """
    has_codes = site["SECOND_FACTOR"] != "no"
    providers = site["SIGNIN_PROVIDERS"] = read_providers(file) if file else {}
    if file or has_codes:
        site["INSTALLED_APPS"] += list_apps(providers, with_second_factor=has_codes)
        site["MIDDLEWARE"].append("allauth.account.middleware.AccountMiddleware")
        site.update(make_settings(providers))
    if site["SECOND_FACTOR"] == "staff":
        site["MIDDLEWARE"].append(STAFF_MIDDLEWARE)
    if site["TRUSTED_USER_HEADER"]:
        if not are_named(site["TRUSTED_USER_PROXIES"]):
            site["env"].refuse("TRUSTED_USER_PROXIES", ALLOWED)
        known = "django.contrib.auth.middleware.AuthenticationMiddleware"
        site["MIDDLEWARE"].insert(
            site["MIDDLEWARE"].index(known) + 1,
            f"{FOLDER}.trusted_header.TrustedHeaderMiddleware",
        )


def list_apps(
    providers: dict[str, IdentityProvider], *, with_second_factor: bool
) -> list[str]:
    saml = ["allauth.socialaccount.providers.saml"] if find_saml(providers) else []
    return [*APPS, *saml, *(["allauth.mfa"] if with_second_factor else [])]


def make_settings(providers: dict[str, IdentityProvider]) -> dict[str, Any]:
    """Return the settings of allauth.

    It creates accounts only for the subjects of a provider, never for addresses, and
    sends no mail.
    """
    return {
        "ACCOUNT_ADAPTER": f"{FOLDER}.adapters.AccountAdapter",
        "ACCOUNT_EMAIL_VERIFICATION": "none",
        "ACCOUNT_EMAIL_NOTIFICATIONS": False,
        "ACCOUNT_SIGNUP_FIELDS": ["username*", "password1*"],
        "ACCOUNT_REAUTHENTICATION_REQUIRED": False,
        "MFA_ADAPTER": f"{FOLDER}.second_factor.codes.MfaAdapter",
        "MFA_ALLOW_UNVERIFIED_EMAIL": True,
        "MFA_SUPPORTED_TYPES": ["totp", "recovery_codes", "webauthn"],
        # Also accepts the codes before and after the current one: phone clocks differ.
        "MFA_TOTP_TOLERANCE": 1,
        "SOCIALACCOUNT_ADAPTER": f"{FOLDER}.adapters.SocialAccountAdapter",
        "SOCIALACCOUNT_EMAIL_AUTHENTICATION": False,
        "SOCIALACCOUNT_EMAIL_VERIFICATION": "none",
        "SOCIALACCOUNT_STORE_TOKENS": False,
        "SOCIALACCOUNT_PROVIDERS": {
            "openid_connect": {
                "APPS": [
                    _make_app(each)
                    for each in providers.values()
                    if isinstance(each, OidcProvider)
                ]
            },
            "saml": {
                "APPS": [
                    {"provider_id": each.id, "name": each.name, "client_id": each.id}
                    for each in find_saml(providers)
                ]
            },
        },
    }


def _make_app(provider: OidcProvider) -> dict[str, Any]:
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
