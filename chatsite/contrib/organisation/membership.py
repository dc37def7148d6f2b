"""The effect of a provider's groups on an account: permissions and deactivation."""

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
    """Return a claim by its name or its dotted path, or None.

    Keycloak, for one, has `realm_access.roles`.
    """
    if name in claims:
        return claims[name]
    value: Any = claims
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def read_groups(provider: IdentityProvider, claimed: object) -> set[str] | None:
    """Return the claimed groups that the provider's description names.

    The claim is a name, a list of names, or an object with the names as keys (Zitadel).
    Return None if the groups are unknown because the provider sends none, as Entra does
    for a member of more than 200.
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
    """Set the rights of the account by its groups; return whether it may log in.

    An account that has lost the required group, or that the provider does not know any
    more (None), is deactivated. The next log-in with the group activates it again. An
    account that staff have deactivated stays deactivated.
    """
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
    """Set the account's rights by Django groups that belong to the provider.

    Their names begin with the provider's id. Rights that staff have given by hand stay.
    """
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
    # Compared in Python, because SQLite ignores case here.
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
