"""Comparison of user names and addresses as readers see them.

No database does that: PostgreSQL's upper case turns `ı` and `ſ` into ASCII letters, so
that it would find a look-alike address as another user's.
"""

import re
from collections.abc import Collection, Iterator
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from string import ascii_lowercase, ascii_uppercase
from typing import Any
from unicodedata import unidata_version

from disarm import normalize_confusables, skeleton_key
from django.apps import apps
from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.core.exceptions import FieldDoesNotExist
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, TextField, Value
from django.db.models.functions import Concat

from .models import NameKey

# Letters without a shape (UAX 44, Default_Ignorable_Code_Point), which `\w` lets pass.
INVISIBLE = re.compile("[\u115f\u1160\u3164\uffa0]")
# UTS 39 has these as one prototype; skeleton_key keeps them apart.
PROTOTYPES = (("1", "l"), ("0", "o"), ("rn", "m"), ("vv", "w"))
# What keys depend on beside the name.
_SOURCES = f"{version('disarm')} {unidata_version} {PROTOTYPES}"
VERSION = f"{sha256(_SOURCES.encode()).hexdigest()[:12]} "
# Accounts looked through at a sign-up for those that were made without keys, as by
# `bulk_create` or an older release that still runs; and those of one statement.
LOOKED_THROUGH, BATCH = 10_000, 500
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


def is_taken_address(email: str, owner_id: int | None = None) -> bool:
    """Return whether an account has this address, other than its owner's."""
    others = get_user_model().objects.exclude(pk=owner_id)
    return others.filter(email__iexact=email).exists()


def make_name_keys(name: str) -> set[str]:
    """Return the keys that names which look alike share.

    These are their skeletons (UTS 39, 4), as written and in lower case, where a capital
    I does not look like a small L.
    """
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
    people = get_user_model().objects
    newest = people.order_by("-pk").values_list("pk", flat=True).first() or 0
    make_missing_keys(people, after=newest - LOOKED_THROUGH)
    keys = {name: digest_name(name) for name in names}
    asked = {key for found in keys.values() for key in found}
    rows = NameKey.objects.filter(key__among=asked)
    taken = set(rows.values_list("key", flat=True))
    return [name for name in names if taken.isdisjoint(keys[name])]


@transaction.atomic
def save_account(user: AbstractBaseUser) -> AbstractBaseUser:
    """Save a new account.

    Raises TakenNameError if a look-alike was created since its name was checked.
    """
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
    """Store the keys of an account that was saved, by its name in the database.

    A fixture can have keys too, so they are checked after it was loaded.
    """
    keep = partial(make_missing_keys, get_user_model().objects.filter(pk=instance.pk))
    if raw:
        transaction.on_commit(keep)
    else:
        keep()


def make_all_keys(apps: Any = apps, **kwargs: Any) -> None:
    """Make the keys that accounts lack, after each migration.

    These are accounts without keys of this version of the site and its libraries.
    """
    try:
        apps.get_model("accounts", "NameKey")._meta.get_field("made_of")
    except (LookupError, FieldDoesNotExist):
        return  # Migrated back to before it.
    make_missing_keys(get_user_model().objects)


def make_missing_keys(accounts: Any, after: int = 0) -> None:
    """Make the keys of the accounts after this id that lack keys of this version.

    Keys have to be of the account's name as it is now.
    """
    made_of = Concat(Value(VERSION), OuterRef("username"), output_field=TextField())
    while True:
        # Both by id, so that the database reads no others.
        stored = NameKey.objects.filter(user__gt=after)
        stored = stored.filter(user=OuterRef("pk"), made_of=made_of)
        lacking = accounts.filter(~Exists(stored), pk__gt=after).order_by("pk")
        if not lacking.exists():
            return
        with transaction.atomic():
            locked = lacking.select_for_update(of=("self",), no_key=True)
            names = dict(locked.values_list("pk", "username")[:BATCH])
            _store_keys(names)
        after = max(names, default=after)


def _store_keys(names: dict[int, str]) -> None:
    """Store keys; wait for new accounts with the same key, so `save_account` sees it.

    Of accounts that look alike, the first of these is the oldest.
    """
    wanted = {
        (key, pk): name for pk, name in names.items() for key in digest_name(name)
    }
    rows = NameKey.objects.filter(user__in=names).values_list("pk", "key", "user")
    stale = [pk for pk, *place in rows if tuple(place) not in wanted]
    NameKey.objects.filter(pk__in=stale).delete()
    for is_first in (True, False):
        made = [
            NameKey(user_id=pk, key=key, is_first=is_first, made_of=f"{VERSION}{name}")
            for (key, pk), name in sorted(wanted.items())
        ]
        if is_first:
            NameKey.objects.bulk_create(made, ignore_conflicts=True)
        else:
            NameKey.objects.bulk_create(
                made,
                update_conflicts=True,
                update_fields=["made_of"],
                unique_fields=["key", "user"],
            )


def find_twins() -> Iterator[tuple[str, str]]:
    """Yield the names of accounts that look like those of older ones, after these."""
    seen: dict[str, str] = {}
    people = get_user_model().objects.order_by("pk")
    for name in people.values_list("username", flat=True).iterator():
        keys = make_name_keys(name)
        if earlier := next((seen[key] for key in keys if key in seen), None):
            yield earlier, name
        seen |= dict.fromkeys(keys, earlier or name)
