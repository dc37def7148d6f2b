"""The right to erasure of a whole account, with one deletion record in its place.

Staff have a page for it, operators a command.
"""

import hashlib
from functools import partial
from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_user_model
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _

from chatsite.accounts import account
from memory.actions import ActionError
from memory.models import Conversation

from ..models import Tombstone
from . import erasing
from .forms import CODE_CHARS

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser


def code_of_person(user: Any) -> str:
    """Return what has to be typed to erase this account, and no other."""
    value = f"{user.pk} {user.get_username()}"
    return salted_hmac("chatsite.erase_person", value).hexdigest()[:CODE_CHARS]


def refuse_erasure(user: Any, by: Any) -> str:
    """Return why `by`, or an operator (None), may not erase this account, or ""."""
    if by is not None and by.pk == user.pk:
        return _("This is your own account: delete it on your account page.")
    if by is not None and user.is_staff and not by.is_superuser:
        return _("Only superusers can erase accounts of staff.")
    others = get_user_model().objects.filter(is_superuser=True, is_active=True)
    if user.is_superuser and not others.exclude(pk=user.pk).exists():
        return _("This is the only superuser. Make another one first.")
    return ""


def erase_person(user: Any, *, by: Any = None, reason: str) -> Tombstone:
    """Delete the account with everything of the user, and leave a record.

    Raises ActionError if that is not allowed, or if something running for the user
    prevents it.
    """
    if refusal := refuse_erasure(user, by):
        raise ActionError(refusal)
    number = user.pk
    record = partial(
        Tombstone.objects.create,
        account=number,
        sha256=fingerprint_person(user),
        begun_at=user.date_joined,
        user=by,
        username=by.get_username() if by else "",
        reason=reason,
        **erasing.count_rows(Conversation.objects.filter(owner=user)),
    )
    try:
        account.delete_account(user, record)
    except account.BusyError:
        text = _("This user still has running jobs. Try again in a moment.")
        raise ActionError(text) from None
    return Tombstone.objects.get(account=number)


def fingerprint_person(user: "AbstractBaseUser") -> str:
    """SHA-256 over the hashes of the conversations in their order, a line for each."""
    hashes = (
        erasing.fingerprint_conversation(row)
        for row in Conversation.objects.filter(owner=user).iterator()
    )
    return hashlib.sha256(
        "".join(f"{h}\n" for h in sorted(hashes)).encode()
    ).hexdigest()
