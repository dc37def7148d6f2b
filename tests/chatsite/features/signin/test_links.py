"""Links by e-mail: to a new password, and to an address that is proved."""

from datetime import timedelta
from threading import Event

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import make_password
from django.db.models import F
from django.test import Client
from django.urls import reverse

from chatsite.features.signin import links, mail
from chatsite.features.signin.models import MailedLink
from chatsite.ops.logs import one_line
from tests.chatsite.scenes import signed_in
from tests.patience import PATIENCE

NEW = "a battery of horses"
CHOSEN = {"new_password1": NEW, "new_password2": NEW}


@pytest.fixture
def alice(alice):
    alice.email = "alice@example.org"
    alice.save()
    return alice


def ask(email="alice@example.org", **headers):
    return Client(headers=headers).post(reverse("signin-forgotten"), {"email": email})


class TestReset:
    def test_link_leads_to_a_new_password_and_ends_all_sessions(
        self, alice, mails, link_in
    ):
        elsewhere = signed_in(alice)
        assert ask("Alice@Example.org").url == reverse("signin-sent")
        [sent] = mails()
        assert sent.to == ["alice@example.org"]
        path, stranger = link_in(sent), Client()
        assert b"alice" in stranger.get(path).content
        assert stranger.post(path, CHOSEN).url == reverse("login")
        assert b"Log in with it" in stranger.get(reverse("login")).content
        fields = {"username": "alice", "password": NEW}
        assert stranger.post(reverse("login"), fields).url == "/"
        assert elsewhere.get("/").status_code == 302

    def test_link_works_once(self, alice, mails, link_in):
        ask()
        path = link_in(mails()[0])
        Client().post(path, CHOSEN)
        for answer in (Client().get(path), Client().post(path, CHOSEN)):
            assert answer.status_code == 404
            assert b"This link does not work" in answer.content

    def test_two_who_use_it_at_once_are_one(self, alice, mails, link_in):
        ask()
        link = links.find_link(link_in(mails()[0]).split("/")[-2])
        links.use_link(link)
        with pytest.raises(MailedLink.DoesNotExist):
            links.use_link(link)

    @pytest.mark.parametrize(
        "change",
        [
            {"password": make_password("another")},
            {"email": "new@example.org"},
            {"is_active": False},
        ],
    )
    def test_link_opens_nothing_once_the_account_has_changed(
        self, alice, mails, link_in, change
    ):
        ask()
        get_user_model().objects.filter(pk=alice.pk).update(**change)
        assert Client().get(link_in(mails()[0])).status_code == 404

    def test_link_ends_after_an_hour(self, alice, mails, link_in):
        ask()
        past = F("expires_at") - timedelta(hours=1)
        MailedLink.objects.update(expires_at=past)
        assert Client().post(link_in(mails()[0]), CHOSEN).status_code == 404

    def test_a_weak_password_leaves_it_open(self, alice, mails, link_in):
        ask()
        path = link_in(mails()[0])
        weak = {"new_password1": "12345", "new_password2": "12345"}
        assert Client().post(path, weak).status_code == 400
        assert Client().post(path, CHOSEN).status_code == 302

    def test_reset_ends_a_lock_out(self, alice, mails, link_in, settings):
        settings.AXES_FAILURE_LIMIT = 2
        wrong = {"username": "alice", "password": "wrong"}
        for _ in range(2):
            answer = Client().post(reverse("login"), wrong)
        assert answer.status_code == 429
        ask()
        Client().post(link_in(mails()[0]), CHOSEN)
        right = {"username": "alice", "password": NEW}
        assert Client().post(reverse("login"), right).status_code == 302

    def test_a_stranger_learns_of_no_account(self, alice, mails):
        alice.set_unusable_password()
        alice.save()
        answers = [ask(), ask("nobody@example.org")]
        assert {answer.url for answer in answers} == {reverse("signin-sent")}
        assert mails() == []

    def test_reset_is_sent_to_the_accounts_address_and_no_lookalike(self, alice, mails):
        # A long s is a capital S in upper case.
        alice.email = "alices@example.org"
        alice.save()
        ask("alice\u017f@example.org")
        assert all(sent.to == ["alices@example.org"] for sent in mails())

    def test_the_secret_is_in_no_row_and_no_line_of_a_log(self, alice, mails, link_in):
        ask()
        path = link_in(mails()[0])
        token = path.split("/")[-2]
        [row] = MailedLink.objects.values_list()
        assert token not in map(str, row)
        assert token not in one_line(f"GET {path} 200")

    def test_link_ignores_the_host_of_a_forged_request(
        self, alice, mails, link_in, settings
    ):
        settings.ALLOWED_HOSTS = ["*"]
        ask(host="evil.example")
        assert "evil.example" not in mails()[0].body
        assert link_in(mails()[0])


class TestPace:
    def test_account_gets_a_limited_number_of_mails_an_hour(self, alice, mails):
        for _ in range(links.MOST_OF_ACCOUNT + 3):
            assert ask().status_code == 302
        assert len(mails()) == links.MOST_OF_ACCOUNT

    def test_client_address_asks_for_few_mails_to_others(self, db, mails, settings):
        people = get_user_model().objects
        for n in range(links.MOST_FROM + 2):
            people.create_user(f"u{n}", f"u{n}@example.org", "secret")
            ask(f"u{n}@example.org")
        assert len(mails()) == links.MOST_FROM
        people.create_user("later", "later@example.org", "secret")
        settings.BEHIND_PROXY = True
        ask("later@example.org", **{"x-forwarded-for": "203.0.113.9"})
        assert len(mails()) == links.MOST_FROM + 1

    def test_a_mail_server_that_hangs_holds_no_request(self, alice, mails, monkeypatch):
        asked, go_on = Event(), Event()

        def hang(self, *args, **kwargs):
            asked.set()
            go_on.wait()
            raise OSError("alice@example.org was refused")

        monkeypatch.setattr(mail.EmailMessage, "send", hang)
        try:
            assert ask().status_code == 302
            assert asked.wait(60 * PATIENCE)
        finally:
            go_on.set()
        assert mails() == []

    def test_more_mails_than_can_wait_are_left_out(self, alice, mailing, monkeypatch):
        monkeypatch.setattr(mail, "_start_thread", lambda: None)
        monkeypatch.setattr(mail, "waiting", mail.Queue(1))
        assert [ask().status_code for _ in range(3)] == [302] * 3
        assert mail.waiting.qsize() == 1

    def test_old_links_are_deleted(self, alice, mails):
        ask()
        past = F("expires_at") - timedelta(days=links.KEPT_DAYS + 1)
        MailedLink.objects.update(expires_at=past, created_at=past)
        ask()
        assert MailedLink.objects.count() == 1


class TestAddress:
    def change(self, client, email, password="alice-secret"):
        fields = {"email-email": email, "email-password": password}
        return client.post(reverse("signin-email"), fields)

    def test_address_is_stored_once_its_mail_is_confirmed(
        self, alice, client, mails, link_in
    ):
        assert self.change(client, "new@example.org").status_code == 302
        alice.refresh_from_db()
        assert alice.email == "alice@example.org"
        path = link_in(mails()[0])
        assert Client().get(path).status_code == 200
        assert b"Address confirmed" in Client().post(path).content
        alice.refresh_from_db()
        assert alice.email == "new@example.org"

    def test_the_address_before_hears_of_it(
        self, alice, client, mails, link_in, django_capture_on_commit_callbacks
    ):
        self.change(client, "new@example.org")
        with django_capture_on_commit_callbacks(execute=True):
            Client().post(link_in(mails()[0]))
        assert mails()[-1].to == ["alice@example.org"]

    def test_address_change_needs_the_password_and_wrong_ones_lock(
        self, alice, client, settings
    ):
        settings.EMAIL_URL = "smtp://mail.example.org"
        settings.AXES_FAILURE_LIMIT = 2
        answers = [self.change(client, "e@x.org", "wrong") for _ in range(2)]
        assert [answer.status_code for answer in answers] == [422, 429]

    def test_an_address_of_another_account_is_not_taken(
        self, alice, bob, client, mails, link_in
    ):
        self.change(client, "Bob@example.org")
        bob.email = "bob@example.org"
        bob.save()
        answer = Client().post(link_in(mails()[0]))
        assert answer.status_code == 409
        alice.refresh_from_db()
        assert alice.email == "alice@example.org"
        assert MailedLink.objects.get().used_at is None

    def test_address_can_be_removed(self, alice, client, mails):
        self.change(client, "")
        alice.refresh_from_db()
        assert alice.email == ""
        assert mails() == []

    def test_address_gets_a_limited_number_of_mails_of_all_accounts(self, alice, mails):
        people = get_user_model().objects
        for n in range(links.MOST_TO_ADDRESS + 1):
            client = signed_in(people.create_user(f"u{n}", password="alice-secret"))
            answer = self.change(client, "victim@example.org")
        assert answer.status_code == 429
        assert b"Try again in an hour" in answer.content
        assert len(mails()) == links.MOST_TO_ADDRESS


def test_a_site_without_mail_has_no_trace_of_it(alice, client):
    assert Client().get(reverse("signin-forgotten")).status_code == 404
    assert b"Forgot" not in Client().get(reverse("login")).content
    assert b"email-heading" not in client.get(reverse("account")).content
    assert client.post(reverse("signin-email")).status_code == 404
