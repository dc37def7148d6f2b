"""API keys: creating, listing, revoking, recognising and charging them."""

import hashlib
import secrets
from collections.abc import Sequence
from datetime import datetime, time, timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.db.models import Case, F, Q, QuerySet, When
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext as _

from chatsite.protocol.errors import CommandError
from memory.sql import Update, prepared_rows, prepared_update

from .apis.errors import ApiError
from .models import ApiKey

PREFIX = "wp_"
KEY_BYTES = 32
HINT_CHARS = len(PREFIX) + 4
SEND, READ = "send", "read"
SCOPES = (SEND, READ)
# Days that a key can be valid for; 0 = until it is revoked.
DAYS = (0, 7, 30, 90, 365)
# Per user: valid keys, and ended ones that are kept for staff.
MAX_VALID, MAX_ENDED = 50, 100
MAX_MODELS = 50
# The precision of a key's last use.
USED_EVERY = timedelta(minutes=1)
# The columns of a key in the download of the account.
DESCRIBED = (
    *("name", "hint", "kind", "scopes", "mode", "models_allowed", "tokens_per_day"),
    *("created_at", "expires_at", "revoked_at", "last_used_at"),
)


class KeyLimitError(ValueError):
    """Raised for a key that can't be made; the message says why."""


def hash_key(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


@transaction.atomic
def create_api_key(
    owner: AbstractBaseUser,
    name: str,
    *,
    days: int = 0,
    scopes: Sequence[str] = (SEND,),
    mode: str = ApiKey.Mode.OBSERVE,
    kind: str = ApiKey.KeyKind.PERSON,
    models_allowed: Sequence[str] = (),
    tokens_per_day: int | None = None,
) -> tuple[ApiKey, str]:
    """Return a new row, and the key itself, which is never shown again.

    Raise KeyLimitError for one key too many.
    """
    # Locked, so that two keys made at once count each other.
    get_user_model().objects.select_for_update().filter(pk=owner.pk).first()
    rows = list_api_keys(owner)
    if only_valid(rows).count() >= MAX_VALID:
        text = _("You have %(count)s keys. Revoke one of them first.")
        raise KeyLimitError(text % {"count": MAX_VALID})
    ended = rows.exclude(pk__in=only_valid(rows)).order_by("-pk")
    rows.filter(pk__in=list(ended.values_list("pk", flat=True)[MAX_ENDED:])).delete()
    key = PREFIX + secrets.token_urlsafe(KEY_BYTES)
    made = ApiKey.objects.create(
        owner=owner,
        name=name,
        sha256=hash_key(key),
        hint=key[:HINT_CHARS],
        scopes=[*scopes],
        mode=mode,
        kind=kind,
        models_allowed=[*models_allowed],
        tokens_per_day=tokens_per_day,
        expires_at=timezone.now() + timedelta(days=days) if days else None,
    )
    return made, key


def list_api_keys(owner: Any) -> QuerySet[ApiKey]:
    return ApiKey.objects.filter(owner=owner).order_by("-pk")


def only_valid(rows: QuerySet[ApiKey]) -> QuerySet[ApiKey]:
    return rows.filter(Q(expires_at=None) | Q(expires_at__gt=Now()), revoked_at=None)


def revoke_api_key(owner: Any, pk: int) -> bool:
    """Revoke a key of this user; return whether there was one to revoke."""
    rows = list_api_keys(owner).filter(pk=pk, revoked_at=None)
    return bool(rows.update(revoked_at=Now()))


def describe_api_keys(owner: AbstractBaseUser) -> list[dict[str, Any]]:
    """Return the keys of a user as data, without their hashes."""
    return list(list_api_keys(owner).order_by("pk").values(*DESCRIBED))


def find_api_key(key: str) -> ApiKey | None:
    """Return the row of a key that may be used now, or None.

    One statement also refuses unknown and ended keys, and owners who may not log in.
    """
    for found in _find_valid(sha256=hash_key(key)):
        last = found.last_used_at
        if last is None or found.now - last >= USED_EVERY or last > found.now:
            ApiKey.objects.filter(pk=found.pk).update(last_used_at=Now())
        return found
    return None


@prepared_rows()
def _find_valid(sha256: Any) -> QuerySet[ApiKey]:
    rows = only_valid(ApiKey.objects.filter(sha256=sha256)).annotate(now=Now())
    return rows.filter(owner__is_active=True).select_related("owner").order_by()


def check_model(key: ApiKey, model: str) -> None:
    """Raise ApiError for a model that the key may not use."""
    if key.models_allowed and model not in key.models_allowed:
        text = _("This key may use these models: %(models)s.")
        names = ", ".join(key.models_allowed)
        raise ApiError(403, "model_not_allowed", text % {"models": names})


def check_tokens(key: ApiKey, uncounted: int = 0) -> None:
    """Raise CommandError when the key has used up its own tokens of the day.

    `uncounted` are tokens that its row does not have yet.
    """
    today = timezone.localdate()
    used = (key.tokens_used if key.day == today else 0) + uncounted
    if key.tokens_per_day is None or used < key.tokens_per_day:
        return
    text = _("This key has used up its %(budget)s tokens for today.")
    detail = text % {"budget": f"{key.tokens_per_day:,}"}
    midnight = timezone.make_aware(datetime.combine(today + DAY, time()))
    seconds = round((midnight - timezone.now()).total_seconds()) + 1
    raise CommandError("quota", detail, retry_after=seconds)


DAY = timedelta(days=1)


def charge_api_key(pk: int, tokens: int) -> None:
    _charge(pk=pk, tokens=tokens, today=timezone.localdate())


@prepared_update(today=ApiKey._meta.get_field("day"))
def _charge(pk: Any, tokens: Any, today: Any) -> Update:
    used = Case(When(day=today, then=F("tokens_used")), default=0) + tokens
    return ApiKey.objects.filter(pk=pk), {"tokens_used": used, "day": today}
