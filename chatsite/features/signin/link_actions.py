"""The actions of links: a user asks for one, and uses it."""

from typing import Any

from axes.utils import reset as forget_failures
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _

from chatsite.accounts.names import find_people, is_taken_address, save_account

from . import links
from .mail import send_soon
from .models import MailedLink

LinkKind = MailedLink.LinkKind


class TakenError(ValueError):
    """Another account has this address of e-mail by now."""


def find_accounts(email: str) -> list[AbstractBaseUser]:
    """Return the accounts with a password and this address.

    There are few, if staff gave the address to several.
    """
    return [user for user in find_people(email)[:3] if user.has_usable_password()]


def send_reset(request: HttpRequest, email: str) -> None:
    """Send a link for a new password to each account with this address.

    If there is none the caller does not learn it, as strangers can ask.
    """
    for user in find_accounts(email):
        try:
            links.check_pace(request, user.email, user)
        except links.TooManyLinksError:
            return
        _send_link(request, LinkKind.RESET, user.email, _("A new password"), user)


def send_confirmation(request: HttpRequest, email: str) -> None:
    """Send a link that makes this the address of the user who asks.

    Raises TooManyLinksError.
    """
    links.check_pace(request, email, request.user)
    _send_link(request, LinkKind.EMAIL, email, _("Confirm your address"), request.user)


def _send_link(
    request: HttpRequest, kind: LinkKind, email: str, subject: str, user: Any
) -> None:
    row = MailedLink(kind=kind, user=user, email=email)
    link = links.make_link(row, request)
    values = {"link": link, "name": user.get_username(), "hours": links.HOURS[kind]}
    send_soon(email, f"Windowpane: {subject}", f"signin/mail/{kind}.txt", values)


@transaction.atomic
def reset_password(link: MailedLink, password: str) -> None:
    """Set the password, which ends all sessions of the user and a lock-out."""
    links.use_link(link)
    link.user.set_password(password)
    link.user.save(update_fields=["password"])
    forget_failures(username=link.user.get_username())


@transaction.atomic
def confirm_email(link: MailedLink) -> None:
    """Set the address, and notify the previous one. Raises TakenError."""
    links.use_link(link)
    user, before = link.user, link.user.email
    if is_taken_address(link.email, user.pk):
        raise TakenError
    user.email = link.email
    user.save(update_fields=["email"])
    if before:
        values = {"name": user.get_username()}
        subject = "Windowpane: " + _("Your address was changed")
        transaction.on_commit(
            lambda: send_soon(before, subject, "signin/mail/changed.txt", values)
        )


def remove_email(user: AbstractBaseUser) -> None:
    user.email = ""
    user.save(update_fields=["email"])


@transaction.atomic
def accept_invitation(link: MailedLink, form: Any) -> AbstractBaseUser:
    """Return the new account of the invited user.

    The address that the link was mailed to is theirs, as they have read it there.
    """
    links.use_link(link)
    user = form.save(commit=False)
    if link.email and not is_taken_address(link.email):
        user.email = link.email
    save_account(user)
    MailedLink.objects.filter(pk=link.pk).update(user=user)
    return user


def describe_links(user: AbstractBaseUser) -> list[dict[str, Any]]:
    """Return the links of a user as data."""
    columns = ("kind", "email", "created_at", "expires_at", "used_at")
    return list(MailedLink.objects.filter(user=user).order_by("pk").values(*columns))
