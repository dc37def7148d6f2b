"""A user is erased by one page or one command, and leaves one record.

That nothing else is left is proved in tests/chatsite/accounts/test_leaving.py.
"""

from io import StringIO

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.core.management import CommandError, call_command
from django.urls import reverse
from django.utils import translation

from chatsite.accounts import account
from chatsite.review.actions import people
from chatsite.review.models import AccessEvent, Tombstone
from memory.actions import ActionError

pytestmark = pytest.mark.django_db
REASON = "Asked for by letter."


@pytest.fixture
def eraser(client, staff_with):
    user = staff_with("metadata", "purge")
    codenames = ("delete_user", "view_user", "change_user")
    user.user_permissions.add(*Permission.objects.filter(codename__in=codenames))
    client.force_login(user)
    return client


def page_of(user):
    return reverse("admin:review-erase-person", args=[user.pk])


def is_there(name):
    return get_user_model().objects.filter(username=name).exists()


def test_page_erases_the_account_and_leaves_one_record(eraser, alice, conversation):
    page = eraser.get(page_of(alice))
    code = people.code_of_person(alice)
    assert code in page.text
    account_page = eraser.get(reverse("admin:auth_user_change", args=[alice.pk]))
    assert page_of(alice) in account_page.text
    done = eraser.post(page_of(alice), {"reason": REASON, "code": code})
    assert done.status_code == 302
    assert not is_there("alice")
    stone = Tombstone.objects.get()
    assert (stone.account, stone.conversation) == (alice.pk, None)
    assert (stone.conversations, stone.messages) == (1, 8)
    assert (stone.username, stone.reason) == ("staff-metadata-purge", REASON)
    assert len(stone.sha256) == 64
    assert AccessEvent.objects.get(action="purge").target == f"account {alice.pk}"
    shown = eraser.get(reverse("admin:desk_tombstone_changelist")).text
    assert f'field-account">{alice.pk}<' in shown


@pytest.mark.parametrize("sent", [{"code": "12345678"}, {"reason": ""}])
def test_erasure_needs_the_code_and_a_reason(eraser, alice, sent):
    values = {"reason": REASON, "code": people.code_of_person(alice), **sent}
    assert eraser.post(page_of(alice), values).status_code == 422
    assert is_there("alice")


def test_the_code_is_of_one_account(alice, bob):
    assert people.code_of_person(alice) != people.code_of_person(bob)


@pytest.mark.parametrize("rights", [("metadata",), ("metadata", "purge")])
def test_erasure_needs_the_rights_to_erase_and_to_delete_users(
    client, staff_with, alice, rights
):
    client.force_login(staff_with(*rights))
    assert client.get(page_of(alice)).status_code == 403
    values = {"reason": REASON, "code": people.code_of_person(alice)}
    assert client.post(page_of(alice), values).status_code == 403
    assert is_there("alice")


def test_staff_erase_neither_superusers_nor_themselves(eraser, staff, staff_with):
    own = get_user_model().objects.get(pk=eraser.session["_auth_user_id"])
    for user, words in ((staff, "Only superusers"), (own, "your own account")):
        assert words in eraser.get(page_of(user)).text
        with pytest.raises(ActionError, match=words):
            people.erase_person(user, by=own, reason=REASON)
    with pytest.raises(ActionError, match="the only superuser"):
        people.erase_person(staff, reason=REASON)


def test_erasure_reports_running_work(eraser, alice, monkeypatch):
    def fail(*args):
        raise account.BusyError

    monkeypatch.setattr(account, "delete_account", fail)
    values = {"reason": REASON, "code": people.code_of_person(alice)}
    assert (
        "This user still has running jobs" in eraser.post(page_of(alice), values).text
    )
    assert not Tombstone.objects.exists()


def test_page_is_translated_to_chinese(eraser, alice):
    # The language of a request stays on in the thread of the test.
    with translation.override(None):
        page = eraser.get(page_of(alice), headers={"accept-language": "zh-hans"}).text
    assert "抹除此用户" in page
    assert "Erase" not in page.partition('id="content-main"')[2]


class TestCommand:
    def run(self, *arguments):
        printed = StringIO()
        call_command("erase_person", *arguments, stdout=printed)
        return printed.getvalue()

    def test_command_shows_what_would_be_erased_and_then_erases(
        self, alice, conversation
    ):
        printed = self.run("alice")
        code = people.code_of_person(alice)
        assert "8 messages" in printed
        assert f"--code {code}" in printed
        assert is_there("alice")
        printed = self.run("alice", "--code", code, "--reason", REASON)
        assert f"Account {alice.pk} was erased" in printed
        assert not is_there("alice")
        stone = Tombstone.objects.get()
        assert (stone.user, stone.username) == (None, "")

    def test_command_finds_an_account_by_its_number(self, alice):
        assert f"of account {alice.pk}, alice," in self.run(str(alice.pk))

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["nobody"], "There is no account 'nobody'."),
            (["9" * 30], "There is no account"),
            (["alice", "--code", "wrong", "--reason", REASON], "not the code"),
            (["alice", "--code", "right"], "Give the reason"),
        ],
    )
    def test_command_names_the_missing_arguments(self, alice, arguments, said):
        code = people.code_of_person(alice)
        given = [code if each == "right" else each for each in arguments]
        with pytest.raises(CommandError, match=said):
            self.run(*given)
        assert is_there("alice")
