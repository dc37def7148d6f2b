"""A reader that does not read costs a bounded amount of memory, then its connection;
one that reads late loses nothing."""

import base64
import json
import os
import socket
import struct
import time
from contextlib import closing

import pytest

from tests.clients import Person
from tests.fakes.upstream import Upstream
from tests.patience import wait_for

pytestmark = pytest.mark.server

MIB = 1024 * 1024
LIMIT = MIB
PAGE = os.sysconf("SC_PAGE_SIZE")


class DeafSocket:
    """A WebSocket that reads only on request."""

    def __init__(self, site, person, path):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.settimeout(10)
        self.socket.connect(("127.0.0.1", site.port))
        cookies = "; ".join(f"{c.name}={c.value}" for c in person.cookies)
        self.socket.sendall(
            f"GET /ws{path} HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\n"
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}\r\n"
            "Sec-WebSocket-Protocol: windowpane.json\r\n"
            f"Origin: {site.url}\r\nCookie: {cookies}\r\n\r\n".encode()
        )
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += self.socket.recv(1)
        assert b" 101 " in answer

    def command(self, **values):
        data = json.dumps(values).encode()
        # Masked with zeros, which leaves it as it is.
        head = struct.pack("!BB4x", 0x81, 0x80 | len(data))
        self.socket.sendall(head + data)

    def event(self):
        """The next event. Frames of a server are whole here, and not masked."""
        _, size = struct.unpack("!BB", self._read(2))
        if size == 126:
            (size,) = struct.unpack("!H", self._read(2))
        elif size == 127:
            (size,) = struct.unpack("!Q", self._read(8))
        return json.loads(self._read(size))

    def _read(self, size):
        data = b""
        while len(data) < size:
            some = self.socket.recv(size - len(data))
            assert some, "the connection was closed"
            data += some
        return data

    def close(self):
        self.socket.close()

    def is_cut(self):
        try:
            for _ in range(10):
                self.command(type="sync")
        except (BrokenPipeError, ConnectionResetError):
            return True
        return False


def resident(site):
    """Bytes of memory that the server process holds."""
    with open(f"/proc/{site.process.pid}/statm") as statm:
        return int(statm.read().split()[1]) * PAGE


@pytest.fixture
def start_huge(start_site):
    """start_huge(upstream) -> a site whose model says much."""
    return lambda upstream: start_site(
        OPENAI_BASE_URL=upstream.url,
        CHAT_MODEL="huge:150000",
        MESSAGES_PER_MINUTE="0",
        SOCKET_BUFFER_BYTES=str(LIMIT),
    )


def test_late_reader_gets_the_whole_page(start_huge):
    with Upstream() as upstream:
        site = start_huge(upstream)
        person = Person(site, "alice")
        path = person.create()
        with person.chat(path) as chat:
            text = chat.say("Tell me much.")["text"]
        with closing(DeafSocket(site, person, path)) as late:
            for _ in range(3):
                late.command(type="sync")
                time.sleep(0.2)
                while (event := late.event())["type"] != "end":
                    pass
                assert event["text"] == text


def test_reader_that_takes_nothing_is_cut_off_alone(start_huge):
    with Upstream() as upstream:
        site = start_huge(upstream)
        person = Person(site, "alice")
        path = person.create()
        with person.chat(path) as chat:
            # Every sync of the deaf one is answered with the whole of this reply.
            assert len(chat.say("Tell me much.")["text"]) == 150_000
            before = resident(site)
            with closing(DeafSocket(site, person, path)) as deaf:
                wait_for(deaf.is_cut, 30, "the end of the deaf socket")
            assert resident(site) - before < LIMIT + 12 * MIB
            upstream.script("ok")
            assert chat.say("Still there?")["state"] == "done"
    assert "socket cut off" in site.log()
