"""The watcher of open sockets: ended sessions, replies without an event, too many
sockets, a database that is away. All of it takes a few queries.
"""

import asyncio
import sys
from contextlib import AsyncExitStack
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from channels.db import database_sync_to_async
from django.contrib import auth
from django.contrib.auth import get_user_model
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.db import OperationalError, connection
from django.db.models import F
from django.test import Client
from django.utils import timezone

from chatsite.accounts import sessions
from chatsite.live import presence, progress, watcher
from chatsite.protocol import events
from chatsite.turns import commands, lifecycle
from chatsite.turns.models import Presence, Turn
from memory import transcript
from memory.leases import PROCESS
from memory.models import Conversation
from tests.patience import within

from ..scenes import signed_in as browser_of
from ..scenes import talk_in_turns
from ..sockets import TIMEOUT, Chat

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("quick_watcher"),
]

MANY = 1000
# Of the site; the tests here go at four times its pace.
SILENCE, SESSION = watcher.SILENCE_SECONDS, watcher.SESSION_SECONDS


@pytest.fixture
def conversation(alice):
    return transcript.create_conversation(alice)


async def closed(chat, seconds=SESSION + 2):
    """The code the socket was closed with."""
    output = await chat.socket.receive_output(timeout=seconds)
    while output["type"] == "websocket.send":
        output = await chat.socket.receive_output(timeout=seconds)
    return output["code"]


def log_out(user, session):
    client = Client()
    client.cookies["sessionid"] = session
    client.logout()


def change_password(user, session):
    user.set_password("another one")
    user.save()


def deactivate(user, session):
    get_user_model().objects.filter(pk=user.pk).update(is_active=False)


def delete(user, session):
    user.delete()


def expire(user, session):
    past = timezone.now() - timedelta(seconds=1)
    Session.objects.filter(session_key=session).update(expire_date=past)


ENDS = (log_out, change_password, deactivate, delete, expire)


def scene(name):
    user = get_user_model().objects.create_user(name)
    key = browser_of(user).cookies["sessionid"].value
    return user, transcript.create_conversation(user), key


class TestSessions:
    def test_sessions_are_checked_often_enough_to_end_in_five_seconds(self):
        assert SESSION + 1 < 5

    async def test_silent_sockets_end_with_their_sessions(self):
        def prepare():
            return [scene(f"person{number}") for number in range(len(ENDS))]

        scenes = await database_sync_to_async(prepare)()
        async with AsyncExitStack() as stack:
            chats = [
                await stack.enter_async_context(Chat(conversation, key))
                for _, conversation, key in scenes
            ]
            for end, (user, _, key) in zip(ENDS, scenes, strict=True):
                await database_sync_to_async(end)(user, key)
            codes = await asyncio.gather(*map(closed, chats))
        assert codes == [4401] * len(ENDS)

    async def test_sockets_of_other_sessions_stay_open(
        self, conversation, session, alice, bob
    ):
        theirs = await database_sync_to_async(transcript.create_conversation)(bob)
        other = await database_sync_to_async(browser_of)(bob)
        key = other.cookies["sessionid"].value
        async with Chat(conversation, session) as one, Chat(theirs, key) as two:
            await database_sync_to_async(log_out)(alice, session)
            assert await closed(one) == 4401
            assert (await two.say("Still here"))["state"] == "done"

    def test_the_batch_agrees_with_the_http_side(self, alice, bob, settings):
        keys = [browser_of(user).cookies["sessionid"].value for user in (alice, bob)]
        holders = {(keys[0], alice.pk), (keys[1], bob.pk)}
        assert sessions.find_ended(holders) == set()
        strangers = {(keys[0], bob.pk), ("missing", alice.pk), (None, alice.pk)}
        assert sessions.find_ended(holders | strangers) == strangers
        settings.AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend"]
        assert sessions.find_ended(holders) == holders

    def test_a_secret_key_can_be_replaced(self, alice, settings):
        key = browser_of(alice).cookies["sessionid"].value
        old = settings.SECRET_KEY
        settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "a new one", [old]
        assert sessions.find_ended({(key, alice.pk)}) == set()


class TestManySockets:
    @pytest.fixture
    def holders(self):
        users = get_user_model().objects.bulk_create(
            [get_user_model()(username=f"u{n}", password="!") for n in range(MANY)]
        )
        until = timezone.now() + timedelta(days=1)
        Session.objects.bulk_create(
            Session(f"key{u.pk}", SessionStore().encode(claims(u)), until)
            for u in users
        )
        return {(f"key{user.pk}", user.pk) for user in users}

    def test_sessions_of_all_sockets_take_one_query(
        self, holders, django_assert_num_queries
    ):
        with django_assert_num_queries(1):
            assert sessions.find_ended(holders) == set()

    def test_conversations_of_all_sockets_take_one_query(
        self, alice, holders, django_assert_num_queries
    ):
        made = Conversation.objects.bulk_create(
            [Conversation(owner_id=pk) for _, pk in holders]
        )
        commands.submit_message(made[0], text="Hello", client_id="c")
        with django_assert_num_queries(1):
            found = progress.read_progress({row.pk for row in made})
        assert len(found) == MANY
        assert [len(found[row.pk].unfinished) for row in made[:2]] == [1, 0]

    def test_repeated_checks_are_few_calls_of_python(self, alice, holders):
        """Each time after the first: what is the same as before is not looked into."""
        made = Conversation.objects.bulk_create(
            [Conversation(owner_id=pk) for _, pk in holders]
        )
        ids, proven = {row.pk for row in made}, {}
        sessions.find_ended(holders, proven)
        assert proven.keys() == holders
        assert calls_of(sessions.find_ended, holders, proven) < 2 * MANY
        assert calls_of(progress.read_progress, ids) < 5 * MANY

    def test_proven_sessions_are_checked_again_when_they_change(self, alice, bob):
        keys = [browser_of(user).cookies["sessionid"].value for user in (alice, bob)]
        holders = {(keys[0], alice.pk), (keys[1], bob.pk)}
        proven = {}
        for end in (change_password, deactivate, expire, log_out):
            assert sessions.find_ended(holders, proven) == set()
            assert proven.keys() == holders
            end(bob, keys[1])
            assert sessions.find_ended(holders, proven) == {(keys[1], bob.pk)}
            assert proven.keys() == {(keys[0], alice.pk)}
            bob.is_active = True
            bob.save()
            keys[1] = browser_of(bob).cookies["sessionid"].value
            holders = {(keys[0], alice.pk), (keys[1], bob.pk)}
        assert sessions.find_ended({(keys[0], alice.pk)}, proven) == set()
        assert proven.keys() == {(keys[0], alice.pk)}

    async def test_watching_them_costs_the_same_as_watching_one(self, conversation):
        def count():
            counted.append(len(connection.queries_log))
            connection.force_debug_cursor = True

        counted = []
        here = watcher.Watcher()
        for each in [idle_socket(conversation) for _ in range(MANY)]:
            here._sockets.add(each)
        await database_sync_to_async(count)()
        await here._look()
        await here._check_sessions()
        await database_sync_to_async(count)()
        # Two looks at conversations and sessions; one more for the doubtful session.
        assert counted[1] - counted[0] <= 6


def calls_of(work, *args):
    """Return how many functions of Python it calls."""
    calls = 0

    def count(frame, event, arg):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        work(*args)
    finally:
        sys.setprofile(None)
    return calls


def claims(user):
    return {
        auth.SESSION_KEY: str(user.pk),
        auth.BACKEND_SESSION_KEY: "django.contrib.auth.backends.ModelBackend",
        auth.HASH_SESSION_KEY: user.get_session_auth_hash(),
    }


class Shown:
    is_live = False
    latest = 0


def idle_socket(conversation):
    async def nothing(*args):
        return True

    return watcher.Socket(
        holder=("none", conversation.owner_id),
        conversation_id=conversation.pk,
        view=Shown(),
        join=nothing,
        sync=lambda: None,
        close=nothing,
        last_seen=None,
        look_at=0.0,
    )


class TestCatchingUp:
    @pytest.fixture
    def deaf(self, monkeypatch):
        """Sockets that get no events."""

        async def nothing(*args):
            return True

        monkeypatch.setattr("chatsite.protocol.layer._call_layer", nothing)

    async def test_a_tab_that_heard_nothing_sees_the_reply(
        self, deaf, conversation, session
    ):
        async with (
            Chat(conversation, session) as one,
            Chat(conversation, session) as two,
        ):
            await one.command(type="send", client_id="c", text="Psst")
            ack = (await one.until("ack"))[-1]
            with within(2 * SILENCE):
                end = (await two.until("end", turn=ack["turn"]))[-1]
        assert end["state"] == "done"

    async def test_page_sees_a_retry_of_a_turn_that_it_knows(
        self, deaf, conversation, session, upstream, settings
    ):
        settings.MODEL_MAX_ATTEMPTS = 1
        upstream.script("500", "ok")
        async with (
            Chat(conversation, session) as one,
            Chat(conversation, session) as two,
        ):
            await one.command(type="send", client_id="c", text="Psst")
            failed = (await two.until("end"))[-1]
            await one.command(type="retry", turn=failed["turn"])
            done = (await two.until("end", state="done"))[-1]
        assert (failed["state"], failed["turn"]) == ("failed", done["turn"])

    async def test_an_idle_page_is_left_alone(self, conversation, session):
        async with Chat(conversation, session) as chat:
            await chat.say("Hello")
            await chat.until("unread")
            assert await chat.socket.receive_nothing(timeout=3 * watcher.LOOK_SECONDS)
            await asyncio.sleep(watcher.SILENCE_SECONDS)
            assert await chat.socket.receive_nothing(timeout=2 * watcher.LOOK_SECONDS)

    async def test_page_that_receives_the_news_first_is_not_drawn_twice(
        self, conversation, session, monkeypatch
    ):
        read = progress.read_progress

        def read_late(ids):
            """The query waits for its thread while a message is sent and published."""
            monkeypatch.setattr(progress, "read_progress", read)
            sent = {"text": "From elsewhere", "client_id": "c"}
            turn = commands.submit_message(conversation, **sent).turn
            state = events.State(turn.pk, turn.state, 0)
            async_to_sync(events.publish_event)(conversation.pk, state)
            return read(ids)

        async with Chat(conversation, session, protocol="") as page:
            await page.socket.receive_from(timeout=TIMEOUT)
            monkeypatch.setattr(progress, "read_progress", read_late)
            html = await page.socket.receive_from(timeout=TIMEOUT)
            assert "From elsewhere" in html
            assert 'id="turns"' not in html
            left = watcher.SILENCE_SECONDS - watcher.LOOK_SECONDS
            assert await page.socket.receive_nothing(timeout=left)

    async def test_a_model_that_thinks_is_not_asked_after_again_and_again(
        self, conversation, session, upstream, settings
    ):
        settings.CHAT_MODEL = "hang"
        async with Chat(conversation, session) as chat:
            await chat.command(type="send", client_id="c", text="Think")
            turn = (await chat.until("ack"))[-1]["turn"]
            await asyncio.sleep(3 * watcher.SILENCE_SECONDS)
            await chat.command(type="stop", turn=turn)
            seen = await chat.until("end", turn=turn)
        assert sum(event["type"] == "frame" for event in seen) <= 2

    def test_progress_changes_with_everything_that_a_page_shows(self, alice):
        conversation = transcript.create_conversation(alice)
        stages = [progress.read_progress([conversation.pk])]
        talk_in_turns(conversation, "Hello")
        stages.append(progress.read_progress([conversation.pk]))
        commands.submit_message(conversation, text="And?", client_id="c")
        stages.append(progress.read_progress([conversation.pk]))
        lifecycle.claim(conversation.pk)
        stages.append(progress.read_progress([conversation.pk]))
        Turn.objects.filter(state="running").update(text="Once")
        stages.append(progress.read_progress([conversation.pk]))
        transcript.rename_conversation(conversation, "Another name")
        stages.append(progress.read_progress([conversation.pk]))
        assert all(one != two for one, two in zip(stages, stages[1:], strict=False))


class TestSocketsPerUser:
    @pytest.fixture(autouse=True)
    def limit(self, settings):
        settings.SOCKETS_PER_USER = 2

    async def test_socket_above_the_limit_is_closed_with_its_code(
        self, conversation, session
    ):
        async with AsyncExitStack() as stack:
            chats = [
                await stack.enter_async_context(Chat(conversation, session))
                for _ in range(3)
            ]
            assert await closed(chats[2]) == 4429
            assert (await chats[1].say("Hello"))["state"] == "done"

    async def test_a_closed_one_makes_room_at_once(self, conversation, session):
        async with Chat(conversation, session):
            for number in range(3):
                async with Chat(conversation, session) as chat:
                    assert (await chat.say(f"Hello {number}"))["state"] == "done"

    def test_sockets_of_other_processes_count(self, alice, bob):
        presence.enter_presence(alice.pk, 1)
        Presence.objects.update(process="another")
        presence.enter_presence(alice.pk, 1)
        with pytest.raises(presence.CommandError, match="2 pages open"):
            presence.enter_presence(alice.pk, 2)
        presence.enter_presence(bob.pk, 2)
        assert Presence.objects.get(user=bob).sockets == 2

    def test_sockets_of_a_dead_process_do_not_count(self, alice):
        presence.enter_presence(alice.pk, 2)
        gone = timezone.now() - timedelta(seconds=1)
        Presence.objects.update(process="another", lease_until=gone)
        presence.enter_presence(alice.pk, 2)
        assert Presence.objects.get(process=PROCESS).sockets == 2

    def test_a_lease_is_renewed_and_the_dead_are_forgotten(self, alice, bob):
        for user in (alice, bob):
            presence.enter_presence(user.pk, 1)
        Presence.objects.filter(user=bob).update(process="another")
        Presence.objects.update(
            lease_until=F("lease_until") - 4 * presence.PRESENCE_LEASE.duration()
        )
        presence.renew_presence({alice.pk: 1})
        assert Presence.objects.get().user == alice
        assert Presence.objects.get().lease_until > timezone.now()

    def test_presence_that_was_not_written_is_written_later(self, alice, bob):
        presence.enter_presence(alice.pk, 2)
        presence.renew_presence({bob.pk: 1, alice.pk: 1})
        stored = Presence.objects.order_by("user").values_list("user", "sockets")
        assert list(stored) == [(alice.pk, 1), (bob.pk, 1)]
        presence.renew_presence({})
        assert not Presence.objects.exists()

    def test_a_process_that_ends_takes_its_sockets_along(self, alice):
        presence.enter_presence(alice.pk, 2)
        presence.forget_presence()
        assert not Presence.objects.exists()


class TestDatabaseAway:
    @pytest.fixture
    async def break_database(self):
        """break_database(True): every statement fails, as if the server were away."""

        def fail(execute, sql, params, many, context):
            raise OperationalError("gone, with what you typed in it")

        def switch(broken):
            wrappers = connection.execute_wrappers
            wrappers[:] = [fail] if broken else []

        yield database_sync_to_async(switch)
        await database_sync_to_async(switch)(False)

    async def test_a_command_is_answered_and_the_socket_stays(
        self, conversation, session, break_database
    ):
        async with Chat(conversation, session) as chat:
            await chat.say("Are you there?")
            await break_database(True)
            await chat.command(type="send", client_id="c9", text="Hello")
            error = (await chat.until("error"))[-1]
            await break_database(False)
            await chat.command(type="send", client_id="c9", text="Hello")
            await chat.until("ack", client_id="c9")
            await chat.until("end", state="done")
        assert (error["code"], error["client_id"]) == ("unavailable", "c9")
        assert error["retry_after"] > 0
        assert "typed" not in error["detail"]

    async def test_opening_socket_is_closed_with_try_again_later(
        self, conversation, session, break_database
    ):
        await break_database(True)
        async with Chat(conversation, session) as chat:
            assert await closed(chat) == 1013

    async def test_a_page_hears_when_to_try_again(
        self, conversation, session, break_database
    ):
        async with Chat(conversation, session, protocol="") as page:
            await page.socket.receive_from(timeout=TIMEOUT)
            await break_database(True)
            await page.command(type="send", client_id="c9", text="Hello")
            html = await page.socket.receive_from(timeout=TIMEOUT)
            await break_database(False)
        assert 'data-code="unavailable"' in html
        assert 'data-client-id="c9"' in html
        assert 'data-retry-after="2.0"' in html

    async def test_events_missed_during_an_outage_are_read_afterwards(
        self, conversation, session, break_database, caplog
    ):
        async with Chat(conversation, session, protocol="") as page:
            await page.socket.receive_from(timeout=TIMEOUT)
            await break_database(True)
            await asyncio.sleep(2 * watcher.SILENCE_SECONDS)
            await break_database(False)
            sent = {"text": "From elsewhere", "client_id": "c"}
            await database_sync_to_async(commands.submit_message)(conversation, **sent)
            html = await page.socket.receive_from(timeout=5)
        assert "From elsewhere" in html
        assert not [r for r in caplog.records if "you typed" in r.getMessage()]

    def test_pages_say_so_without_a_trace(self, client, conversation, monkeypatch):
        def fail(execute, *args):
            raise OperationalError("gone")

        with connection.execute_wrapper(fail):
            answers = [client.get(path) for path in ("/", "/accounts/login/", "/c/")]
            page = client.get(f"/c/{conversation.uuid}/")
        assert page.status_code == answers[0].status_code == 503
        assert page["Retry-After"] == "5"
        assert "Your messages are safe" in page.content.decode()
        assert "Traceback" not in page.content.decode()
