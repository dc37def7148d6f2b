"""People in the admin: what they have used, and the budget that staff can change."""

import re

import pytest
from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from chatsite.accounts import account
from chatsite.turns.models import Allowance
from memory import transcript
from memory.models import Conversation
from tests.memory.scenes import plant, say


@pytest.fixture
def reader(client, staff):
    client.force_login(staff)
    return client


@pytest.fixture
def allowance(alice):
    today = timezone.localdate()
    return Allowance.objects.create(user=alice, day=today, tokens_used=1234)


def test_staff_see_what_was_used_and_change_the_budget(reader, allowance):
    listed = reader.get("/admin/chat/allowance/").content.decode()
    assert "alice" in listed
    assert "no limit" in listed
    page = f"/admin/chat/allowance/{allowance.pk}/change/"
    shown = reader.get(page).content.decode()
    assert f"{allowance.tokens_used:,}" in shown
    done = reader.post(page, {"tokens_per_day": "5000", "tokens_used": "0"})
    assert done.status_code == 302
    before = allowance.tokens_used
    allowance.refresh_from_db()
    assert (allowance.tokens_per_day, allowance.tokens_used) == (5000, before)
    entry = LogEntry.objects.get()
    assert entry.object_id == str(allowance.pk)
    assert "tokens" in entry.get_change_message().lower()


def test_used_tokens_cannot_be_given_back(reader, allowance):
    page = f"/admin/chat/allowance/{allowance.pk}/delete/"
    assert reader.post(page, {"post": "yes"}).status_code == 403


def test_a_new_user_can_be_given_a_budget(reader, bob):
    values = {"user": bob.pk, "tokens_per_day": "10"}
    done = reader.post("/admin/chat/allowance/add/", values)
    assert done.status_code == 302
    assert Allowance.objects.get(user=bob).tokens_per_day == 10


@pytest.mark.parametrize(
    ("rights", "more", "may_see", "may_change"),
    [
        ((), [], False, False),
        ((), ["change_allowance", "view_allowance"], False, False),
        (("metadata",), [], True, False),
        (("metadata",), ["change_allowance"], True, True),
    ],
)
def test_a_budget_takes_the_right_to_see_and_the_one_to_change(
    client, staff_with, allowance, rights, more, may_see, may_change
):
    user = staff_with(*rights)
    user.user_permissions.add(*Permission.objects.filter(codename__in=more))
    client.force_login(user)
    page = reverse("admin:chat_allowance_change", args=[allowance.pk])
    assert (client.get(page).status_code == 200) is may_see
    assert (client.post(page, {"tokens_per_day": 7}).status_code == 302) is may_change


class TestUse:
    """The values on the page of a user beside Django's own fields."""

    @pytest.fixture
    def call(self, conversation, settings):
        settings.PRICE_INPUT, settings.PRICE_OUTPUT = 1_000, 5_000
        call = say(conversation, "Hi")
        plant(call, model="gpt-9", tokens_input=700, tokens_cached=300)
        plant(call, tokens_output=100)
        return call

    @pytest.mark.parametrize("page", ["auth_user_change", "chat_allowance_change"])
    def test_page_shows_usage_by_day_and_model(self, reader, allowance, call, page):
        text = reader.get(reverse(f"admin:{page}", args=[allowance.pk])).content
        row = text.decode().partition("gpt-9</td>")[2].partition("</tr>")[0]
        cells = re.findall(r"<td>(.*?)</td>", row)
        assert cells == ["1", "700", "300", "100", "$0.9300"]
        assert re.search(r"1 conversation\s*<", text.decode())
        for words in ("10 messages", "1,234 tokens today"):
            assert words in text.decode()

    def test_page_takes_as_many_queries_for_much_usage_as_for_little(
        self,
        reader,
        alice,
        call,
        django_assert_num_queries,
        django_assert_max_num_queries,
    ):
        page = reverse("admin:auth_user_change", args=[alice.pk])
        with django_assert_max_num_queries(20) as few:
            reader.get(page)
        for _ in range(3):
            say(transcript.create_conversation(alice), "Hi")
        with django_assert_num_queries(len(few)):
            reader.get(page)

    def test_an_account_page_alone_shows_no_use(self, client, staff_with, alice, call):
        user = staff_with()
        user.user_permissions.add(Permission.objects.get(codename="view_user"))
        client.force_login(user)
        page = client.get(reverse("admin:auth_user_change", args=[alice.pk]))
        assert page.status_code == 200
        assert b"gpt-9" not in page.content

    def test_a_user_with_conversations_is_not_deleted_here(self, reader, alice, call):
        page = reverse("admin:auth_user_delete", args=[alice.pk])
        assert b"Erase this user" in reader.post(page, {"post": "yes"}).content
        chosen = {"action": "delete_selected", "_selected_action": [alice.pk]}
        reader.post(reverse("admin:auth_user_changelist"), {**chosen, "post": "yes"})
        assert Conversation.objects.filter(owner=alice).exists()

    def test_account_without_conversations_is_deleted(self, reader, bob):
        page = reverse("admin:auth_user_delete", args=[bob.pk])
        assert reader.post(page, {"post": "yes"}).status_code == 302
        assert not get_user_model().objects.filter(username="bob").exists()

    def test_protected_rows_are_deleted_with_the_account(
        self, reader, allowance, alice
    ):
        chosen = {"action": "delete_selected", "_selected_action": [alice.pk]}
        reader.post(reverse("admin:auth_user_changelist"), {**chosen, "post": "yes"})
        assert not Allowance.objects.exists()
        assert not get_user_model().objects.filter(username="alice").exists()

    def test_staff_who_may_not_delete_users_do_not(self, client, staff_with, bob):
        user = staff_with("metadata")
        user.user_permissions.add(Permission.objects.get(codename="view_user"))
        client.force_login(user)
        page = reverse("admin:auth_user_delete", args=[bob.pk])
        assert client.post(page, {"post": "yes"}).status_code == 403
        chosen = {"action": "delete_selected", "_selected_action": [bob.pk]}
        client.post(reverse("admin:auth_user_changelist"), {**chosen, "post": "yes"})
        assert get_user_model().objects.filter(username="bob").exists()

    @pytest.mark.parametrize("name", ["delete_model", "delete_queryset"])
    def test_deletion_reports_running_work(self, reader, bob, monkeypatch, name):
        def fail(user):
            raise account.BusyError

        monkeypatch.setattr(account, "delete_account", fail)
        if name == "delete_model":
            page = reverse("admin:auth_user_delete", args=[bob.pk])
            values = {"post": "yes"}
        else:
            page = reverse("admin:auth_user_changelist")
            chosen = {"action": "delete_selected", "_selected_action": [bob.pk]}
            values = {**chosen, "post": "yes"}
        shown = reader.post(page, values, follow=True)
        assert "still has running jobs" in shown.content.decode()
        assert get_user_model().objects.filter(username="bob").exists()


def log_in(name, password):
    fields = {"username": name, "password": password}
    return Client().post(reverse("login"), fields).status_code


def test_list_names_locked_users_and_deleting_a_row_unlocks(
    admin_client, django_user_model
):
    full = settings.AXES_FAILURE_LIMIT
    for name, times in (("one", full), ("two", full - 1), ("three", full)):
        django_user_model.objects.create_user(name, password="right-one")
        for _ in range(times):
            log_in(name, "wrong")
    rows = AccessAttempt.objects
    rows.filter(username="three").update(
        attempt_time=timezone.now() - settings.AXES_COOLOFF_TIME
    )
    page = reverse("admin:axes_accessattempt_changelist")
    listed = admin_client.get(page).content.decode()
    cells = r"field-username.*?>(\w+)</a>.*?field-locked_until[^>]*>([^<]*)<"
    shown = dict(re.findall(cells, listed, re.DOTALL))
    assert re.fullmatch(r"\d+ \w+ \d{4} \d\d:\d\d", shown.pop("one"))
    assert shown == {"two": "-", "three": "-"}
    assert log_in("one", "right-one") == 429
    row = rows.get(username="one")
    gone = reverse("admin:axes_accessattempt_delete", args=[row.pk])
    admin_client.post(gone, {"post": "yes"})
    assert log_in("one", "right-one") == 302


def test_empty_list_of_logins_is_not_offered(admin_client):
    listed = admin_client.get("/admin/").content.decode()
    assert set(re.findall(r"/admin/axes/(\w+)/", listed)) == {"accessattempt"}
