"""User names and addresses compared as people see them. No database does that:
PostgreSQL's upper case turns `ı` and `ſ` into ASCII letters, so that a look-alike
address is found as another person's.
"""

import re
from collections.abc import Collection, Iterator
from hashlib import sha256
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from disarm import normalize_confusables, skeleton_key
from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import IntegrityError, transaction

from .models import NameKey

# Letters without a shape (UAX 44, Default_Ignorable_Code_Point), which `\w` lets pass.
INVISIBLE = re.compile("[\u115f\u1160\u3164\uffa0]")
# UTS 39 has these as one prototype; skeleton_key keeps them apart.
PROTOTYPES = (("1", "l"), ("0", "o"), ("rn", "m"), ("vv", "w"))
_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)


class TakenNameError(ValueError):
    """Another account has this name, or one that looks like it."""


def is_same_address(one: str, other: str) -> bool:
    """Compare two addresses, letters of ASCII in either case, all others exactly."""
    return one.strip().translate(_LOWER) == other.strip().translate(_LOWER)


def find_people(email: str) -> list[Any]:
    """Return the active accounts with this address, ordered by id."""
    found = get_user_model().objects.filter(email__iexact=email, is_active=True)
    return [user for user in found.order_by("pk") if is_same_address(user.email, email)]


def make_name_keys(name: str) -> set[str]:
    """Return what names that look alike have in common: their skeletons (UTS 39, 4) as
    written and in lower case, where a capital I is no small L."""
    lower = normalize_confusables(name).lower()
    keys = {skeleton_key(name), skeleton_key(lower)}
    for letters, prototype in PROTOTYPES:
        keys = {key.replace(letters, prototype) for key in keys}
    return keys


def digest_name(name: str) -> list[str]:
    """Return the keys as they are stored, in one order for all who write them."""
    keys = make_name_keys(name)
    return sorted(sha256(key.encode()).hexdigest() for key in keys)


def find_free_names(names: Collection[str]) -> list[str]:
    """Return those of the names that look like no account's."""
    keys = {name: digest_name(name) for name in names}
    asked = {key for found in keys.values() for key in found}
    rows = NameKey.objects.filter(key__among=asked)
    taken = set(rows.values_list("key", flat=True))
    return [name for name in names if taken.isdisjoint(keys[name])]


@transaction.atomic
def save_account(user: AbstractBaseUser) -> AbstractBaseUser:
    """Save a new account. Raises TakenNameError where another one that looks like it
    was made since its name was checked."""
    try:
        with transaction.atomic():
            user.save()
    except IntegrityError:
        raise TakenNameError from None
    keys = digest_name(user.get_username())
    if NameKey.objects.filter(key__among=keys).exclude(user=user).exists():
        raise TakenNameError
    return user


def keep_name_keys(instance: Any, raw: bool = False, **kwargs: Any) -> None:
    """Store the keys of an account that was saved. Waits for one that is being made
    with the same key, so that `save_account` sees it."""
    if raw:
        return
    keys = digest_name(instance.get_username())
    stored = NameKey.objects.filter(user=instance)
    if not kwargs.get("created"):
        if sorted(stored.values_list("key", flat=True)) == keys:
            return
        stored.exclude(key__in=keys).delete()
    for is_first in (True, False):
        rows = [NameKey(user=instance, key=key, is_first=is_first) for key in keys]
        NameKey.objects.bulk_create(rows, ignore_conflicts=True)


def find_twins() -> Iterator[tuple[str, str]]:
    """Yield the names of accounts that look like those of older ones, after these."""
    seen: dict[str, str] = {}
    for name in _read_usernames():
        keys = make_name_keys(name)
        if earlier := next((seen[key] for key in keys if key in seen), None):
            yield earlier, name
        seen |= dict.fromkeys(keys, earlier or name)


def _read_usernames() -> Iterator[str]:
    people = get_user_model().objects.order_by("pk")
    return people.values_list("username", flat=True).iterator()
