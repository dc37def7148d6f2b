"""Bodies of requests are bounded while they are received, before any check of the site
reads the database for them."""

import os
import socket
import time
from contextlib import closing, contextmanager
from io import BytesIO

import pytest
from twisted.web.http_headers import Headers

from chatsite.live import backpressure
from chatsite.live.backpressure import UnreadRequest
from chatsite.ops.load import TOO_BUSY
from tests.clients import Person
from tests.patience import PATIENCE, within
from tests.servers import PlainSite, Site

pytestmark = pytest.mark.server

MIB = 1024 * 1024
PIECE = b"x" * MIB
PAGE = os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(scope="module")
def _site(new_database):
    env = {"MCP_SERVER_ENABLED": "true", "IMPORT_MAX_MB": "20"}
    with new_database() as url, Site({"DATABASE_URL": url, **env}) as site:
        yield site


@pytest.fixture
def site(_site):
    yield _site
    _site.show_log()


def memory(site):
    with open(f"/proc/{site.process.pid}/statm") as file:
        return int(file.read().split()[1]) * PAGE // MIB


@contextmanager
def bounded_memory(site, most=60):
    before = memory(site)
    yield
    assert memory(site) - before < most


class Sender:
    """A request whose body is sent piece by piece, as far as the site takes it."""

    def __init__(self, site, path, *head, length=None, method="POST"):
        self.socket = socket.create_connection(("127.0.0.1", site.port), 10 * PATIENCE)
        kind = "Transfer-Encoding: chunked" if length is None else ""
        kind = kind or f"Content-Length: {length}"
        lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{site.port}", kind]
        self.is_chunked = length is None
        self.socket.sendall("\r\n".join([*lines, *head, "", ""]).encode())

    def send(self, data):
        if self.is_chunked:
            data = b"%x\r\n%s\r\n" % (len(data), data)
        self.socket.sendall(data)

    def send_many(self, megabytes):
        """Return how many the site has taken before it hung up."""
        for sent in range(megabytes):
            try:
                self.send(PIECE)
            except OSError:
                return sent
        return megabytes

    def read(self):
        """Return the status and all of the answer."""
        with closing(self.socket):
            answer = b""
            while data := self.socket.recv(65_536):
                answer += data
        return int(answer[9:12]), answer


def cookies_of(person):
    return "Cookie: " + "; ".join(f"{c.name}={c.value}" for c in person.cookies)


GIGABYTE = 1024 * MIB
MADE_UP = ("Cookie: sessionid=abcdefghijklmnopqrstuvwxyz012345",)
WRONG_KEY = ("Authorization: Bearer wp_wrong",)


@pytest.mark.parametrize("length", [GIGABYTE, None])
@pytest.mark.parametrize(
    ("path", "head", "status"),
    [
        ("/accounts/login/", (), 413),
        ("/import/", (), 413),
        ("/import/", MADE_UP, 413),
        ("/attachments/", MADE_UP, 413),
        ("/admin/login/", (), 413),
        ("/nowhere/", MADE_UP, 413),
        ("/static/x.js", (), 413),
        ("/v1/chat/completions", (), 401),
        ("/v1/chat/completions", WRONG_KEY, 401),
        ("/mcp", WRONG_KEY, 401),
    ],
)
def test_strangers_are_answered_before_their_body_is_received(
    site, path, head, status, length
):
    with bounded_memory(site):
        sender = Sender(site, path, *head, length=length)
        # Chunks have no length before they come.
        if length is None:
            sender.send(PIECE)
        assert sender.read()[0] == status


def test_answer_is_read_by_clients_that_go_on_sending(site):
    with bounded_memory(site), within(20):
        sender = Sender(site, "/accounts/login/", length=100 * MIB)
        assert sender.send_many(100) == 100
        assert sender.read()[0] == 413


def test_connection_is_closed_on_clients_that_never_stop(site):
    sender = Sender(site, "/accounts/login/")
    with bounded_memory(site), closing(sender.socket):
        end = time.monotonic() + 30 * PATIENCE
        while sender.send_many(10) == 10:
            assert time.monotonic() < end
            time.sleep(0.2)


def test_client_that_asks_first_is_not_told_to_send(site):
    head = ("Expect: 100-continue",)
    status, answer = Sender(site, "/import/", *head, length=GIGABYTE).read()
    assert (status, b"100 Continue" in answer) == (413, False)


def test_upgrades_have_no_body(site):
    head = ("Upgrade: websocket", "Connection: Upgrade")
    with bounded_memory(site):
        sender = Sender(site, "/ws/c/x/", *head, method="GET")
        with closing(sender.socket):
            sender.send_many(100)


def test_many_small_pieces_of_a_known_length_count_as_they_are(site):
    sender = Sender(site, "/accounts/login/", "Connection: close", length=4_000)
    sender.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range(4_000):
        sender.socket.sendall(b"x")
    assert sender.read()[0] == 403


def test_many_small_chunks_count_as_more(site):
    sender = Sender(site, "/accounts/login/")
    sender.socket.sendall(b"1\r\nx\r\n" * 2_000)
    assert sender.read()[0] == 413


def test_keys_get_the_answer_of_their_wire(site):
    Person(site, "alice")
    key = site.manage("create_key", "alice", "--scope", "send,read").strip()
    head = (f"Authorization: Bearer {key}", "Content-Type: application/json")
    for path, size, words in (
        ("/v1/chat/completions", GIGABYTE, b'"code": "too_large"'),
        ("/v1/messages", GIGABYTE, b'"type": "request_too_large"'),
        ("/mcp", MIB, b"65,536 bytes"),
    ):
        status, answer = Sender(site, path, *head, length=size).read()
        assert (status, words in answer) == (413, True), answer


def test_large_bodies_of_people_are_read_at_the_pace_of_the_application(site):
    person = Person(site, "bob")
    head = (cookies_of(person), "Content-Type: text/plain", "Connection: close")
    for length in (20 * MIB, None):
        senders = [Sender(site, "/import/", *head, length=length) for _ in range(6)]
        with bounded_memory(site):
            for sender in senders:
                assert sender.send_many(20) == 20
                if length is None:
                    sender.socket.sendall(b"0\r\n\r\n")
            # Nothing of the form is in it.
            assert [sender.read()[0] for sender in senders] == [403] * 6
    status, _ = Sender(site, "/import/", *head, length=22 * MIB).read()
    assert status == 413


def make_incoming(sender, size):
    """A body of this user of which so much has come."""
    request = UnreadRequest.__new__(UnreadRequest)
    request.content, request.requestHeaders = BytesIO(), Headers()
    request.channel, request.sender = None, sender
    request.allowed = size
    request.handleContentChunk(b"x" * size)
    return request


async def test_bodies_of_one_person_have_a_limit_together(monkeypatch):
    monkeypatch.setattr(backpressure, "MAX_WAITING_BYTES", 2_000)
    first, second = make_incoming(1, 1_000), make_incoming(1, 900)
    assert not first.refusal + second.refusal
    third, other = make_incoming(1, 500), make_incoming(2, 500)
    assert (third.refusal, other.refusal) == (TOO_BUSY, "")
    assert third.content.getvalue() == b""
    first.close_body()
    assert not make_incoming(1, 1_000).refusal
    for request in (second, other):
        request.close_body()
        request.close_body()
    assert backpressure._waiting == {1: 1_000}
    backpressure._waiting.clear()


def test_daphne_without_the_script_has_the_same_bounds(new_database):
    with new_database() as url, PlainSite({"DATABASE_URL": url}) as site:
        status, _ = Sender(site, "/import/", length=GIGABYTE).read()
        assert status == 413
