"""What the claims of a provider do to an account: its permissions, and its end."""

from collections.abc import Collection
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import Group, Permission
from django.db import transaction
from django.db.models.functions import Now

from .configuration import IdentityProvider
from .models import Membership

CODENAMES = {
    "metadata": "view_metadata",
    "content": "read_content",
    "export": "export_conversations",
    "purge": "purge_conversations",
}


def find_claim(claims: dict[str, Any], name: str) -> object:
    """Return a claim by its name or by its dotted path, such as Keycloak's
    `realm_access.roles`; None if there is none."""
    if name in claims:
        return claims[name]
    value: Any = claims
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def read_groups(provider: IdentityProvider, claimed: object) -> set[str] | None:
    """Return the claimed groups that the provider's description names, out of a name, a
    list of names, or an object whose keys they are (Zitadel). None: the provider says
    nothing of groups, as Entra does for a member of more than 200, so they are unknown.
    """
    named = {*provider.members, *provider.staff}
    if isinstance(claimed, str):
        claimed = [claimed]
    if named and not isinstance(claimed, list | dict):
        return None
    return {each for each in claimed or () if isinstance(each, str) and each in named}


def is_member(provider: IdentityProvider, groups: Collection[str]) -> bool:
    return not provider.members or any(each in groups for each in provider.members)


@transaction.atomic
def apply_groups(
    user: AbstractBaseUser, provider: IdentityProvider, groups: Collection[str] | None
) -> bool:
    """Give the account what its groups give, and take what they don't; whether it may
    log in. One that has lost the group that it needs, or that the provider knows no
    more (None), is deactivated, and comes back with the next log-in that has the group;
    one that staff have deactivated stays so."""
    row, _made = Membership.objects.select_for_update().get_or_create(
        user=user, provider=provider.id
    )
    people = get_user_model().objects.filter(pk=user.pk)
    if groups is None or not is_member(provider, groups):
        if row.left_at is None and people.filter(is_active=True).update(
            is_active=False
        ):
            Membership.objects.filter(pk=row.pk).update(left_at=Now())
        _give_rights(user, row, provider, ())
        user.is_active = False
        return False
    if row.left_at is not None:
        people.update(is_active=True)
        user.is_active = True
        Membership.objects.filter(pk=row.pk).update(left_at=None)
    _give_rights(user, row, provider, groups)
    return user.is_active


def _give_rights(
    user: Any, row: Membership, provider: IdentityProvider, groups: Collection[str]
) -> None:
    """Through groups of Django's, that are named for the provider and are its own; what
    staff have given by hand stays."""
    own = f"{provider.id}: "
    wanted = {}
    for name in sorted(set(provider.staff) & set(groups)):
        group, _made = Group.objects.get_or_create(name=f"{own}{name}"[:150])
        codenames = [CODENAMES[right] for right in provider.staff[name]]
        rights = Permission.objects.filter(
            codename__in=codenames, content_type__app_label="memory"
        )
        group.permissions.set(rights)
        wanted[group.pk] = group
    # Not by the database, of which SQLite compares without case.
    had = [group for group in user.groups.all() if group.name.startswith(own)]
    user.groups.remove(*(group for group in had if group.pk not in wanted))
    user.groups.add(*wanted.values())
    _set_staff(user, row, is_staff=bool(wanted))


def _set_staff(user: Any, row: Membership, *, is_staff: bool) -> None:
    if is_staff and not user.is_staff:
        row.gave_staff = user.is_staff = True
    elif not is_staff and row.gave_staff:
        row.gave_staff = False
        others = Membership.objects.filter(user=user, gave_staff=True)
        user.is_staff = others.exclude(pk=row.pk).exists()
    else:
        return
    row.save(update_fields=["gave_staff"])
    user.save(update_fields=["is_staff"])
