"""The account page: preferences, own data, sessions, the end of an account."""

import json
import re
from functools import partial

import pytest
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import AsyncClient, Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from chatsite.accounts import usage
from chatsite.features.labels import services as labels
from chatsite.live import socket_client
from chatsite.protocol import events
from chatsite.protocol.errors import CommandError
from chatsite.turns import commands, lifecycle, limits
from chatsite.turns.models import Allowance, Preferences, Turn
from memory import library, transcript
from memory.models import Conversation, Message, ModelCall, Prompt, RecallEntry
from tests.memory.scenes import say, summarise

from ..features.importing.test_importing import take
from ..scenes import page_of, signed_in, talk_in_turns, url

PAGES = ("account", "account-export", "import", "password-change")
POSTS = ("account-sign-out", "account-delete")


def post(client, name, password="alice-secret"):
    prefix = {"account-sign-out": "sign_out", "account-delete": "deletion"}[name]
    return client.post(reverse(name), {f"{prefix}-password": password})


class TestAccess:
    @pytest.mark.parametrize("name", [*PAGES, *POSTS])
    def test_page_needs_a_login(self, db, name):
        client = Client()
        send = client.post if name in POSTS else client.get
        assert send(reverse(name)).url.startswith(reverse("login"))

    @pytest.mark.parametrize("name", [*POSTS, "account", "import"])
    def test_form_needs_a_csrf_token(self, alice, name):
        strict = signed_in(alice, enforce_csrf_checks=True)
        assert strict.post(reverse(name)).status_code == 403

    @pytest.mark.parametrize("readable", [True, False])
    def test_page_says_whether_staff_can_read(self, client, settings, readable):
        settings.STAFF_CAN_READ_CHATS = readable
        page = client.get(reverse("account")).content.decode()
        assert ("can open transcripts" in page) is readable
        assert ("no titles and no texts" in page) is not readable


def usage_of(client):
    """Return the names and values of the section."""
    page = client.get(reverse("account")).content.decode()
    part = page[page.index('<dl class="usage">') : page.index("</dl>")]
    cells = re.findall(r"<d[td]>\s*(.*?)\s*</d[td]>", part, re.DOTALL)
    return dict(zip(cells[::2], cells[1::2], strict=True))


class TestUsage:
    def test_usage_is_the_users_own_of_today(self, client, alice, bob, settings):
        settings.TOKENS_PER_DAY = 50_000
        limits.charge_tokens(alice.pk, 1_234)
        limits.charge_tokens(bob.pk, 99)
        for owner in (alice, alice, bob):
            say(transcript.create_conversation(owner), "a")
        transcript.create_conversation(alice, temporary=True)
        assert usage_of(client) == {
            "Tokens today": "1,234 of 50,000",
            "Conversations": "2",
            "Messages": "4",
        }

    def test_usage_without_a_limit_starts_at_zero_each_day(self, client, alice):
        assert usage_of(client)["Tokens today"] == "0, no limit"
        limits.charge_tokens(alice.pk, 5)
        Allowance.objects.update(day="2020-01-01", tokens_per_day=10)
        assert usage_of(client)["Tokens today"] == "0 of 10"

    def test_messages_are_counted_up_to_a_bound(self, client, alice, monkeypatch):
        monkeypatch.setattr(usage, "MOST_COUNTED", 3)
        made = transcript.create_conversation(alice)
        say(made, "a")
        say(made, "b")
        with CaptureQueriesContext(connection) as asked:
            assert usage_of(client)["Messages"] == "3 or more"
        assert any("LIMIT 3" in query["sql"] for query in asked)


class TestPasswords:
    """Every page that asks for the password that one has."""

    PLACES = {
        "account-sign-out": {"sign_out-password": "wrong"},
        "account-delete": {"deletion-password": "wrong"},
        "password-change": {
            "old_password": "wrong",
            "new_password1": "fresh-secret-1",
            "new_password2": "fresh-secret-1",
        },
    }

    @pytest.mark.parametrize("name", PLACES)
    def test_password_form_locks_after_as_many_guesses_as_the_login(
        self, client, settings, name
    ):
        settings.AXES_FAILURE_LIMIT = 3
        guess = partial(client.post, reverse(name), self.PLACES[name])
        found = [guess().status_code for _ in range(4)]
        assert 429 not in found[:2]
        assert found[2:] == [429, 429]

    def test_guesses_on_all_pages_count_together(self, client, alice, settings):
        settings.AXES_FAILURE_LIMIT = 3
        for name, fields in self.PLACES.items():
            locked = client.post(reverse(name), fields)
        assert locked.status_code == 429
        right = self.PLACES["password-change"] | {"old_password": "alice-secret"}
        assert client.post(reverse("password-change"), right).status_code == 429
        alice.refresh_from_db()
        assert alice.check_password("alice-secret")
        log_in = {"username": "alice", "password": "alice-secret"}
        assert Client().post(reverse("login"), log_in).status_code == 429

    def test_the_right_password_changes_it(self, client, alice):
        right = self.PLACES["password-change"] | {"old_password": "alice-secret"}
        assert client.post(reverse("password-change"), right).url == reverse("account")
        alice.refresh_from_db()
        assert alice.check_password("fresh-secret-1")

    def test_the_administration_has_no_page_of_its_own(self, staff):
        answer = signed_in(staff).get(reverse("admin:password_change"))
        assert answer.url == reverse("password-change")

    @pytest.mark.parametrize("path", [*PLACES, "login", "admin:login"])
    def test_page_forbids_browsers_to_cache_it(self, alice, settings, path):
        settings.AXES_FAILURE_LIMIT = 1
        fields = {"username": "alice", "password": "wrong", **self.PLACES.get(path, {})}
        visitor = signed_in(alice) if path in self.PLACES else Client()
        if path not in POSTS:
            assert "no-store" in visitor.get(reverse(path))["Cache-Control"]
        locked = visitor.post(reverse(path), fields)
        assert locked.status_code == 429
        assert "no-store" in locked["Cache-Control"]


class TestPreferences:
    def test_new_conversations_begin_with_them(self, client, settings):
        settings.CHAT_MODELS = ["other-model"]
        chosen = {"model": "other-model", "preset": "guide"}
        assert client.post(reverse("account"), chosen).status_code == 302
        client.post("/c/")
        made = Conversation.objects.get()
        assert (made.model, made.get_policy().preset) == ("other-model", "guide")

    def test_choice_of_the_form_comes_before_preferences(self, client, alice):
        Preferences.objects.create(user=alice, preset="guide")
        client.post("/c/", {"preset": "langgraph"})
        assert Conversation.objects.get().get_policy().preset == "langgraph"

    @pytest.mark.parametrize("chosen", [{"model": "gpt-9"}, {"preset": "none"}])
    def test_preferences_accept_only_what_is_offered(self, client, chosen):
        assert client.post(reverse("account"), chosen).status_code == 422
        assert not Preferences.objects.exists()

    def test_a_model_that_is_offered_no_longer_is_not_used(self, client, alice):
        Preferences.objects.create(user=alice, model="gone", preset="gone")
        client.post("/c/")
        made = Conversation.objects.get()
        assert (made.model, made.get_policy().preset) == ("", "layered")


class TestTimeZone:
    """The time zone is the browser's: a script keeps it in a cookie."""

    def visit(self, client, conversation, zone):
        client.cookies["time_zone"] = zone
        page_of(client, conversation)

    def test_time_zone_follows_the_browser(self, client, alice):
        conversation = transcript.create_conversation(alice)
        for zone in ("Asia/Tokyo", "America/Argentina/Ushuaia"):
            self.visit(client, conversation, zone)
            assert Preferences.objects.get(user=alice).time_zone == zone

    @pytest.mark.parametrize(
        "zone", ["", "undefined", "Europe", "../../etc", "x" * 999]
    )
    def test_invalid_time_zone_changes_nothing(self, client, alice, zone):
        Preferences.objects.create(user=alice, preset="guide", time_zone="Asia/Tokyo")
        self.visit(client, transcript.create_conversation(alice), zone)
        stored = Preferences.objects.get(user=alice)
        assert (stored.time_zone, stored.preset) == ("Asia/Tokyo", "guide")

    def test_the_same_one_writes_nothing(self, client, alice):
        conversation = transcript.create_conversation(alice)
        for written in (True, False):
            with CaptureQueriesContext(connection) as queries:
                self.visit(client, conversation, "Asia/Tokyo")
            asked = [each["sql"] for each in queries if "preferences" in each["sql"]]
            assert any(not sql.startswith("SELECT") for sql in asked) is written


@pytest.mark.django_db(transaction=True)
class TestExport:
    async def fetch(self, user):
        client = AsyncClient()
        await client.aforce_login(
            user, backend="django.contrib.auth.backends.ModelBackend"
        )
        answer = await client.get(reverse("account-export"))
        assert "attachment" in answer["Content-Disposition"]
        return "".join([part.decode() async for part in answer.streaming_content])

    async def test_export_holds_everything_and_can_be_imported(self, alice, bob):
        def prepare():
            for title in ("One", "Two", "Gone"):
                made = transcript.create_conversation(alice, title=title)
                talk_in_turns(made, f"Text of {title}")
                summarise(made, 1, 2)
            library.delete_conversation(made)
            transcript.create_conversation(bob, title="Secret of Bob")
            work, _unused = labels.find_or_make_labels(alice, ["Work", "Unused"])
            labels.give_labels([work], library.list_own(alice))

        def take_in(text):
            talked = [c for c in json.loads(text)["conversations"] if c["messages"]]
            return take(bob, {"conversations": talked})

        await in_thread(prepare)
        text = await self.fetch(alice)
        value = json.loads(text)
        titles = [each["conversation"]["title"] for each in value["conversations"]]
        assert titles == ["One", "Two"]
        assert value["account"]["username"] == "alice"
        assert value["account"]["labels"] == ["Unused", "Work"]
        assert value["conversations"][0]["conversation"]["labels"] == ["Work"]
        assert "Bob" not in text
        assert len((await in_thread(take_in, text)).imported) == 2

    async def test_export_is_valid_when_there_is_nothing(self, alice):
        assert json.loads(await self.fetch(alice))["conversations"] == []


async def in_thread(work, *args):
    from channels.db import database_sync_to_async

    return await database_sync_to_async(work)(*args)


class TestSignOut:
    def test_sign_out_ends_all_other_sessions(self, client, alice, conversation):
        other = signed_in(alice)
        key = other.session.session_key
        open_socket = socket_client.SocketClient(
            alice.pk, key, str(conversation.uuid), conversation.pk
        )
        assert post(client, "account-sign-out").status_code == 302
        assert client.get("/").status_code == 200
        assert other.get("/").url.startswith(reverse("login"))
        assert open_socket.perform_command(events.Sync()) is socket_client.SIGNED_OUT

    def test_sign_out_needs_the_password(self, client, alice):
        other = signed_in(alice)
        answer = post(client, "account-sign-out", "wrong")
        assert answer.status_code == 422
        assert b"This is not your password." in answer.content
        assert other.get("/").status_code == 200

    def test_the_password_still_works(self, client, alice):
        post(client, "account-sign-out")
        alice.refresh_from_db()
        assert alice.check_password("alice-secret")


class TestPassword:
    def test_password_can_be_changed(self, client, alice):
        fields = {
            "old_password": "alice-secret",
            "new_password1": "a much longer one 9",
            "new_password2": "a much longer one 9",
        }
        answer = client.post(reverse("password-change"), fields)
        assert answer.url == reverse("account")
        alice.refresh_from_db()
        assert alice.check_password("a much longer one 9")
        assert b"Your password was changed." in client.get(answer.url).content


class TestDelete:
    @pytest.fixture
    def other(self, bob):
        made = transcript.create_conversation(bob)
        talk_in_turns(made, "Mine stays")
        return made

    def test_deletion_removes_everything(self, client, alice, conversation, other):
        summarise(conversation, 1, 2)
        hidden = transcript.create_conversation(alice, system_prompt="My own prompt.")
        talk_in_turns(hidden, "Deleted before")
        library.delete_conversation(hidden)
        assert b"Account deleted" in post(client, "account-delete").content
        assert not get_user_model().objects.filter(username="alice").exists()
        for model in (Message, ModelCall, Turn):
            assert {row.conversation for row in model.objects.all()} == {other}
        assert RecallEntry.objects.count() == 2
        assert not Prompt.objects.filter(text="My own prompt.").exists()
        assert not Session.objects.filter(pk=client.session.session_key).exists()

    def test_deletion_needs_the_password(self, client, alice, conversation):
        assert post(client, "account-delete", "wrong").status_code == 422
        assert Conversation.objects.filter(owner=alice, deleted_at=None).exists()

    def test_deletion_stops_running_turns(self, client, conversation):
        commands.submit_message(conversation, text="One", client_id="1")
        claim = lifecycle.claim(conversation.pk)
        post(client, "account-delete")
        assert lifecycle.checkpoint(claim, "More") is lifecycle.LeaseStatus.LOST

    def test_deletion_closes_sockets_at_once(self, client, conversation):
        key = client.session.session_key
        open_socket = socket_client.SocketClient(
            conversation.owner_id, key, str(conversation.uuid), conversation.pk
        )
        post(client, "account-delete")
        assert open_socket.perform_command(events.Sync()) is socket_client.SIGNED_OUT

    def test_the_sockets_of_a_deleted_conversation_are_refused(
        self, client, conversation
    ):
        key = client.session.session_key
        open_socket = socket_client.SocketClient(
            conversation.owner_id, key, str(conversation.uuid), conversation.pk
        )
        client.post(url("delete", conversation))
        with pytest.raises(CommandError, match="no longer exists"):
            open_socket.perform_command(events.Sync())
