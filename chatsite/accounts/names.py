"""User names and addresses compared as people see them. No database does that:
PostgreSQL's upper case turns `ı` and `ſ` into ASCII letters, so that a look-alike
address is found as another person's.
"""

import re
from collections.abc import Iterator
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from disarm import normalize_confusables, skeleton_key
from django.contrib.auth import get_user_model

# Letters without a shape (UAX 44, Default_Ignorable_Code_Point), which `\w` lets pass.
INVISIBLE = re.compile("[\u115f\u1160\u3164\uffa0]")
# UTS 39 has these as one prototype; skeleton_key keeps them apart.
PROTOTYPES = (("1", "l"), ("0", "o"), ("rn", "m"), ("vv", "w"))
_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)


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


def read_name_keys() -> set[str]:
    """Return the keys of all accounts: a name that has one of them looks like one that
    is taken. For 100,000 accounts this takes as long as hashing some passwords."""
    return {key for name in _read_usernames() for key in make_name_keys(name)}


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
