"""The channel layer over Redis with real sentinels.

Another server is promoted, and two processes reach each other through it.
"""

import asyncio
import contextlib
import socket

import pytest

from chatsite.protocol.pubsub import PubSubLayer, name_primary
from tests.patience import wait_for
from tests.servers import Redis

NAME, PASSWORD = "myMaster", "se:cret"
GROUP = "group"


class Replica(Redis):
    """A server with a password, and one that it copies, if any."""

    def __init__(self, of=None):
        super().__init__()
        self.of = of

    def command(self):
        own = ["--requirepass", PASSWORD, "--masterauth", PASSWORD]
        copied = ["--replicaof", "127.0.0.1", str(self.of.port)] if self.of else []
        # An address of its own, so that sentinels see one server.
        announced = ["--replica-announce-ip", "127.0.0.1"]
        return [*super().command(), *own, *copied, *announced]

    def is_ready(self):
        try:
            return b"NOAUTH" in self.ask(b"PING\r\n")
        except OSError:
            return False

    def ask(self, command):
        with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
            connection.sendall(command)
            return connection.recv(4096)

    def is_copying(self):
        asked = f"AUTH {PASSWORD}\r\nINFO replication\r\n".encode()
        return b"master_link_status:up" in self.ask(asked)


class Sentinel(Redis):
    def __init__(self, primary):
        super().__init__()
        self.primary = primary

    def prepare(self):
        lines = [
            f"port {self.port}",
            "bind 127.0.0.1",
            f"dir {self.folder}",
            f"sentinel monitor {NAME} 127.0.0.1 {self.primary.port} 2",
            f"sentinel auth-pass {NAME} {PASSWORD}",
            f"sentinel down-after-milliseconds {NAME} 500",
            f"sentinel failover-timeout {NAME} 2000",
        ]
        (self.folder / "sentinel.conf").write_text("\n".join(lines) + "\n")

    def command(self):
        return ["redis-server", str(self.folder / "sentinel.conf"), "--sentinel"]


@pytest.fixture
def servers():
    primary = Replica()
    copy = Replica(primary)
    sentinels = [Sentinel(primary) for _ in range(3)]
    all_of_them = [primary, copy, *sentinels]
    try:
        primary.start()
        copy.start()
        wait_for(copy.is_copying, 20, "a copy")
        for each in sentinels:
            each.start()
        wait_for(lambda: all(map(knows_all, sentinels)), 20, "sentinels")
        yield primary, sentinels
    finally:
        for each in all_of_them:
            each.stop(show_log=False)


def knows_all(sentinel):
    with socket.create_connection(("127.0.0.1", sentinel.port), 1) as connection:
        connection.sendall(f"SENTINEL MASTER {NAME}\r\n".encode())
        found = connection.recv(8192).decode().split("\r\n")
    values = dict(zip(found[2::4], found[4::4], strict=False))
    return values.get("num-slaves") == "1" and values.get("num-other-sentinels") == "2"


async def wait_until_received(sender, receiver, channel, seconds):
    """Return how many tries it took until one process received the other's message."""
    received = set()

    async def listen():
        # A receive() that is cancelled would drop what comes until the next one.
        while True:
            received.add((await receiver.receive(channel))["number"])

    listening = asyncio.create_task(listen())
    try:
        async with asyncio.timeout(seconds):
            for tries in range(10_000):
                # As the site does, it tries again.
                with contextlib.suppress(Exception):
                    await sender.group_send(GROUP, {"type": "news", "number": tries})
                await asyncio.sleep(0.2)
                if tries in received:
                    return tries
    finally:
        listening.cancel()
        await asyncio.wait([listening])


async def close(layer):
    """Close with the connections to sentinels, which flush() leaves to the end of the
    process.
    """
    for shard in layer._get_layer()._shards:
        for each in shard._redis.connection_pool.sentinel_manager.sentinels:
            await each.aclose()
    await layer.flush()


async def test_processes_follow_the_promoted_server(servers):
    primary, sentinels = servers
    url = f"redis://:{PASSWORD.replace(':', '%3A')}@{NAME}/0"
    # One that is away is passed over.
    named = ["127.0.0.1:1", *(f"127.0.0.1:{each.port}" for each in sentinels)]
    sender, receiver = PubSubLayer(url, named), PubSubLayer(url, named)
    channel = await receiver.new_channel()
    await receiver.group_add(GROUP, channel)
    assert await wait_until_received(sender, receiver, channel, 10) < 10
    primary.kill()
    await wait_until_received(sender, receiver, channel, 30)
    for each in (sender, receiver):
        await close(each)


def test_a_name_stands_in_place_of_the_host():
    found = name_primary("rediss://me:a%40b@myMaster:6379/2", ["[::1]:26379", "b:1"])
    assert found["master_name"] == "myMaster"
    assert found["sentinels"] == [("::1", 26379), ("b", 1)]
    assert (found["username"], found["password"], found["db"]) == ("me", "a@b", 2)
    assert found["ssl"] is True
    assert "host" not in found
