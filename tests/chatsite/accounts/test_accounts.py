"""Signing up, logging in and out."""

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

ELSEWHERE = (
    "https://evil.example",
    "//evil.example",
    "\\\\evil.example",
    "javascript:alert(1)",
)


class TestAccount:
    def fields(self, name="carol"):
        secret = "correct horse battery"
        return {"username": name, "password1": secret, "password2": secret}

    def test_user_signs_up_and_logs_in(self, db):
        client = Client()
        assert client.post(reverse("signup"), self.fields()).url == "/"
        assert client.get("/").status_code == 200

    def test_taken_name_is_refused(self, alice):
        answer = Client().post(reverse("signup"), self.fields("alice"))
        assert answer.status_code == 400
        assert get_user_model().objects.count() == 1

    def test_errors_of_a_password_are_beside_its_field(self, db):
        short = {"username": "carol", "password1": "abc", "password2": "abc"}
        errors = Client().post(reverse("signup"), short).context["form"].errors
        assert set(errors) == {"password1"}

    def test_errors_of_a_password_are_in_the_language_of_the_page(self, db):
        client = Client(headers={"accept-language": "zh-hans"})
        short = {"username": "carol", "password1": "abc", "password2": "abc"}
        page = client.post(reverse("signup"), short).content.decode()
        assert "密码太短，至少需要 8 个字符。" in page

    def test_sign_up_can_be_disabled(self, db, settings):
        settings.SIGNUP_ENABLED = False
        assert Client().get(reverse("signup")).status_code == 404
        assert Client().post(reverse("signup"), self.fields()).status_code == 404
        assert b"Create an account" not in Client().get(reverse("login")).content

    def log_in(self, client, *, typed="alice-secret", **query):
        fields = {"username": "alice", "password": typed}
        return client.post(
            reverse("login", query=query) if query else reverse("login"), fields
        )

    @pytest.mark.parametrize(
        "there", ["https://evil.example", "//evil.example", "\\\\evil", "javascript:x"]
    )
    def test_redirect_after_the_login_stays_on_the_site(self, alice, there):
        assert self.log_in(Client(), next=there).url == "/"

    def test_login_changes_the_session_key(self, alice):
        client = Client()
        client.get("/")
        before = client.session.session_key
        self.log_in(client)
        assert client.session.session_key != before

    def test_login_is_locked_after_too_many_tries(self, alice, settings, caplog):
        settings.AXES_FAILURE_LIMIT = 3
        for _ in range(3):
            answer = self.log_in(Client(), typed="wrong")
        assert answer.status_code == 429
        assert b"Too many attempts" in answer.content
        assert self.log_in(Client()).status_code == 429
        # For fail2ban, and without the name that was tried.
        assert "log-in locked address=127.0.0.1" in caplog.messages
        assert "alice" not in str(caplog.messages)

    def test_logout_needs_a_post(self, client):
        assert client.get(reverse("logout")).status_code == 405
        assert client.post(reverse("logout")).url == reverse("login")
        assert client.get("/").status_code == 302
