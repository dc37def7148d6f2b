"""Invitations: links by staff to an account that there is not yet."""

import re

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from chatsite.features.signin.models import MailedLink
from tests.chatsite.scenes import signed_in

SECRET = "correct horse battery"
NEW = {"username": "carol", "password1": SECRET, "password2": SECRET}
ADD = "admin:signin_invitation_add"
ALL = "admin:signin_invitation_changelist"


@pytest.fixture(autouse=True)
def closed(settings):
    settings.SIGNUP_ENABLED = False


def invite(staff, **fields):
    """The path of the link that the page shows."""
    page = signed_in(staff).post(reverse(ADD), fields, follow=True).content.decode()
    found = re.search(r"(/accounts/link/[\w-]{32}/)", page)
    return found and found[1]


def test_a_link_makes_one_account_where_signing_up_is_closed(staff):
    path = invite(staff)
    carol = Client()
    assert b"You are invited" in carol.get(path).content
    assert carol.post(path, NEW).url == "/"
    assert carol.get("/").status_code == 200
    assert Client().post(path, {**NEW, "username": "dave"}).status_code == 404
    row = MailedLink.objects.get()
    assert (row.user.username, row.made_by) == ("carol", staff)


def test_the_list_shows_no_link_again(staff):
    path = invite(staff)
    page = signed_in(staff).get(reverse(ALL)).content.decode()
    assert path not in page


def test_a_mailed_one_gives_the_account_its_address(staff, mails, link_in):
    assert invite(staff, email="carol@example.org") is None
    [sent] = mails()
    Client().post(link_in(sent), NEW)
    carol = get_user_model().objects.get(username="carol")
    assert carol.email == "carol@example.org"


def test_invitation_gives_no_address_of_another_account(staff, alice, mails, link_in):
    invite(staff, email="alice@example.org")
    alice.email = "Alice@example.org"
    alice.save()
    Client().post(link_in(mails()[0]), NEW)
    assert get_user_model().objects.get(username="carol").email == ""


def test_deleting_one_revokes_it(staff):
    path = invite(staff)
    row = MailedLink.objects.get()
    delete = reverse("admin:signin_invitation_delete", args=[row.pk])
    signed_in(staff).post(delete, {"post": "yes"})
    assert Client().post(path, NEW).status_code == 404


def test_invitation_needs_a_permission_of_its_own(staff_with):
    user = staff_with("metadata", "content", "export", "purge")
    assert signed_in(user).get(reverse(ADD)).status_code == 403
    user.user_permissions.add(Permission.objects.get(codename="add_invitation"))
    assert invite(get_user_model().objects.get(pk=user.pk)) is None
    assert MailedLink.objects.count() == 1


def test_invitations_of_staff_who_have_left_are_invalid(staff):
    path = invite(staff)
    get_user_model().objects.filter(pk=staff.pk).update(is_active=False)
    assert Client().post(path, NEW).status_code == 404
