"""However a socket ends, what it held is free again, and no error is logged."""

import ast
import asyncio
import logging
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from channels.db import database_sync_to_async
from django.apps import apps
from django.urls import reverse

from chatsite import metrics, plugins
from chatsite.asgi import protocols
from chatsite.live import consumer, socket_client, watcher
from chatsite.protocol import events, layer
from chatsite.review.actions import erasing
from chatsite.settings import OPTIONAL_APPS
from chatsite.turns import runner
from chatsite.turns.models import Presence
from memory import library, transcript
from tests.remembered import remembered

from ..scenes import signed_in, talk_in_turns, url
from ..sockets import TIMEOUT, Chat

pytestmark = pytest.mark.django_db(transaction=True)
SITE = Path(consumer.__file__).parent.parent


@pytest.fixture
@remembered
def conversation(alice):
    made = transcript.create_conversation(alice)
    talk_in_turns(made, "Hello")
    return made


@pytest.fixture
def no_errors(caplog):
    """Check that no error is logged, and that all tasks end without one."""
    caplog.set_level(logging.INFO)
    yield
    assert [r.getMessage() for r in caplog.records if r.levelname == "ERROR"] == []


async def close_code(chat):
    while True:
        output = await chat.socket.receive_output(timeout=TIMEOUT)
        if output["type"] == "websocket.close":
            return output["code"]


async def assert_free(conversation):
    """Check that a socket left no trace: in the gauge, the database, the groups."""
    await asyncio.gather(*runner._tasks)
    assert metrics.SOCKETS._value.get() == 0
    assert watcher.current_watcher().count_sockets(conversation.owner_id) == 0
    assert not await Presence.objects.aexists()
    assert events.group_of(conversation.pk) not in layer._members


def delete_on_the_page(conversation, alice, staff):
    signed_in(alice).post(url("delete", conversation))


def delete_the_account(conversation, alice, staff):
    fields = {"deletion-password": "alice-secret"}
    signed_in(alice).post(reverse("account-delete"), fields)


def erase_as_staff(conversation, alice, staff):
    erasing.erase_with_tombstone(conversation, user=staff)


def delete_without_a_word(conversation, alice, staff):
    library.delete_conversation(conversation)


WAYS = [
    delete_on_the_page,
    delete_the_account,
    erase_as_staff,
    delete_without_a_word,
]


@pytest.mark.usefixtures("quick_watcher")
@pytest.mark.parametrize("protocol", ["windowpane.json", ""])
@pytest.mark.parametrize("delete", WAYS)
async def test_deleting_a_conversation_closes_its_sockets(
    conversation, session, alice, staff, delete, protocol, no_errors
):
    async with Chat(conversation, session, protocol=protocol) as chat:
        await sync_to_async(delete)(conversation, alice, staff)
        # A deleted account ends its sessions, which may be noticed first.
        codes = {4404, 4401} if delete is delete_the_account else {4404}
        assert await close_code(chat) in codes
    await assert_free(conversation)


class Server:
    """A server between the site and a browser that fails as asked."""

    def __init__(self, conversation, session, protocol, allowed):
        self.scope = {
            **Chat(conversation, session, protocol=protocol).socket.scope,
            "session": None,
        }
        del self.scope["session"]
        self.incoming = asyncio.Queue()
        self.allowed, self.sent, self.failed = allowed, [], 0

    async def send(self, message):
        if len(self.sent) >= self.allowed:
            self.failed += 1
            raise RuntimeError("Attempt to send on a closed protocol")
        self.sent.append(message["type"])

    def start(self):
        self.incoming.put_nowait({"type": "websocket.connect"})
        work = protocols(self.scope, self.incoming.get, self.send)
        self.task = asyncio.create_task(work)

    def tell(self, text):
        self.incoming.put_nowait({"type": "websocket.receive", "text": text})

    async def settle(self):
        for _ in range(20):
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("protocol", ["windowpane.json", ""])
@pytest.mark.parametrize("allowed", range(5))
async def test_a_send_that_fails_ends_the_socket_and_nothing_else(
    conversation, session, protocol, allowed, no_errors
):
    server = Server(conversation, session, protocol, allowed)
    server.start()
    await server.settle()
    server.tell('{"type":"sync"}')
    server.tell("{bad")
    await events.publish_event(conversation.pk, events.Title("New"))
    for _ in range(4):
        server.tell('{"type":"sync"}')
        await asyncio.sleep(0.05)
    await server.settle()
    assert server.failed
    await assert_free(conversation)
    server.incoming.put_nowait({"type": "websocket.disconnect", "code": 1006})
    await asyncio.wait_for(server.task, TIMEOUT)


@pytest.mark.parametrize("pause", [0.0, 0.02, 0.3])
async def test_a_socket_that_the_server_gives_up_is_let_go(
    conversation, session, pause, no_errors
):
    server = Server(conversation, session, "", 1000)
    server.start()
    await asyncio.sleep(pause)
    server.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await server.task
    await assert_free(conversation)


async def test_socket_sends_nothing_after_a_close(conversation, session, no_errors):
    server = Server(conversation, session, "", 1000)
    server.start()
    await server.settle()
    await events.tell_gone(conversation.pk)
    for turn in range(3):
        await events.publish_event(conversation.pk, events.Frame(turn, 1, 0, "late"))
        server.tell('{"type":"sync"}')
    await server.settle()
    assert server.sent[-1] == "websocket.close"
    server.incoming.put_nowait({"type": "websocket.disconnect", "code": 4404})
    await asyncio.wait_for(server.task, TIMEOUT)
    await assert_free(conversation)


async def test_a_defect_is_logged_once_and_holds_nothing(
    conversation, session, monkeypatch, caplog
):
    def broken(view, client):
        raise ZeroDivisionError
        yield

    monkeypatch.setattr(socket_client.HtmlView, "sync", broken)
    async with Chat(conversation, session, protocol="") as chat:
        assert await close_code(chat) == 1011
    assert [r.levelname for r in caplog.records].count("ERROR") == 1
    await assert_free(conversation)


async def test_words_of_a_newer_process_are_no_end(conversation, session, no_errors):
    group = events.group_of(conversation.pk)
    async with Chat(conversation, session) as chat:
        for message in (
            {"type": "chat.dance"},
            {"type": "chat.event", "event": {"type": "dance"}},
            {"type": "chat.event", "event": {"type": "title", "title": "T", "x": 1}},
        ):
            layer.deliver_here(group, message)
        assert (await chat.say("Still here?"))["state"] == "done"


def types_sent(path):
    """The types of the messages that a file sends over the channel layer."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Dict):
            continue
        pairs = zip(node.keys, node.values, strict=True)
        for key, value in pairs:
            is_type = isinstance(key, ast.Constant) and key.value == "type"
            if is_type and isinstance(value, ast.Constant):
                yield value.value


def test_every_message_to_a_conversation_has_a_handler():
    sent = {kind for path in SITE.rglob("*.py") for kind in types_sent(path)}
    to_sockets = {kind for kind in sent if kind.startswith("chat.")}
    assert to_sockets == {"chat.event", "chat.gone"}
    for kind in to_sockets:
        name = kind.replace(".", "_")
        assert name in vars(consumer.ConversationConsumer), kind


def test_every_event_that_is_published_is_known_to_those_who_get_it(conversation):
    absent = [
        SITE.parent / each.replace(".", "/")
        for each in OPTIONAL_APPS
        if not apps.is_installed(each)
    ]
    published = {
        node.args[1].func
        for path in SITE.rglob("*.py")
        if not any(path.is_relative_to(folder) for folder in absent)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).endswith("events.publish_event")
        and isinstance(node.args[1], ast.Call)
    }
    words = (word for func in published for word in ast.unparse(func).split("."))
    names = {word.lower() for word in words if word[0].isupper()}
    # The rest is published from a name: the ends of turns, by events.make_end_events().
    assert {"jobstate", "memory", "title"} <= names
    kinds = (*events.EVENTS.values(), *plugins.find_event_kinds().values())
    assert names <= {kind.__name__.lower() for kind in kinds}
    turn = conversation.turns.get()
    samples = [
        events.State(turn.pk, "running"),
        events.Frame(turn.pk, 1, 0, "words"),
        events.TurnEnd.from_turn(turn),
        events.Memory(None, "changed"),
        events.Title("New"),
        events.JobState("proposal", "running"),
    ]
    assert {type(sample) for sample in samples} == set(events.EVENTS.values())
    client = socket_client.SocketClient(conversation.owner_id, "", "", conversation.pk)
    for sample in samples:
        wire = {"type": "chat.event", "event": events.to_json(sample)}
        assert events.from_layer(wire) == sample
        assert socket_client.JsonView().at_once(sample)
        if not isinstance(sample, events.Frame):
            view = socket_client.HtmlView()
            list(view.sync(client))
            assert any(map(any, view.draw_event(client, sample)))


PATHS = {
    "upper-case": lambda uuid: f"/ws/c/{str(uuid).upper()}/",
    "missing slash": lambda uuid: f"/ws/c/{uuid}",
    "too many slashes": lambda uuid: f"//ws/c/{uuid}//",
    "no uuid": lambda uuid: "/ws/c/1/",
    "NUL": lambda uuid: f"/ws/c/{uuid}/\0",
    "a line break": lambda uuid: f"/ws/c/{uuid}/\n",
    "nothing": lambda uuid: "/",
    "empty": lambda uuid: "",
    "elsewhere": lambda uuid: "/admin/",
}


@pytest.mark.parametrize("protocol", ["windowpane.json", ""])
@pytest.mark.parametrize("path", PATHS)
async def test_a_path_to_nowhere_is_not_found(
    conversation, session, path, protocol, no_errors
):
    chat = Chat(conversation, session, protocol=protocol)
    chat.socket.scope["path"] = PATHS[path](conversation.uuid)
    async with chat:
        assert chat.accepted
        assert await close_code(chat) == 4404


COOKIES = {
    "NUL": b'sessionid="' + b"a" * 20 + b'\\000"',
    "a quote": b"sessionid='" + b"a" * 32,
    "latin": b"sessionid=" + b"\xe9" * 32,
    "a lone surrogate": b"sessionid=" + "\ud800".encode(errors="surrogatepass") * 32,
    "UTF-8": "sessionid=会话会话会话会话会话".encode(),
    "none": b"",
    "long": b"sessionid=" + b"a" * 4000,
    "language": b'django_language="zh\\000"; sessionid=' + b"a" * 32,
    "a language of its own": b"django_language=" + b"\xff\xfe" * 50,
}


@pytest.mark.parametrize("cookie", COOKIES)
async def test_a_cookie_that_no_database_takes_is_signed_out(
    conversation, cookie, no_errors
):
    chat = Chat(conversation)
    chat.socket.scope["headers"].append((b"cookie", COOKIES[cookie]))
    async with chat:
        assert await close_code(chat) == 4401


async def test_a_gone_account_leaves_no_socket_behind(conversation, session, no_errors):
    async with Chat(conversation, session) as chat:
        await database_sync_to_async(conversation.owner.delete)()
        await chat.command(type="sync")
        assert await close_code(chat) in (4401, 4404)
    await assert_free(conversation)
