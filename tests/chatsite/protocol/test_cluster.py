"""The channel layer over a real Redis Cluster.

Through one of its nodes it works as over one server; through two, messages arrive but
the sender does not learn how many processes received them.
"""

import asyncio
import socket

import pytest

from chatsite.protocol.pubsub import PubSubLayer
from tests.patience import wait_for
from tests.servers import Redis

GROUP = "group"


class Node(Redis):
    def command(self):
        files = ["--cluster-config-file", str(self.folder / "nodes.conf")]
        # The default is 10,000 more, which may be no port at all.
        bus = ["--cluster-port", str(self.bus_port)]
        return [*super().command(), "--cluster-enabled", "yes", *files, *bus]

    def prepare(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.bus_port = probe.getsockname()[1]

    def ask(self, command):
        with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
            connection.sendall(f"{command}\r\n".encode())
            return connection.recv(4096).decode()


@pytest.fixture
def nodes():
    made = [Node() for _ in range(3)]
    try:
        for each in made:
            each.start()
        first, *others = made
        for each in others:
            first.ask(f"CLUSTER MEET 127.0.0.1 {each.port} {each.bus_port}")
        for each, slots in zip(
            made, ("0 5460", "5461 10922", "10923 16383"), strict=True
        ):
            assert each.ask(f"CLUSTER ADDSLOTSRANGE {slots}").startswith("+OK")
        wait_for(lambda: all(map(is_whole, made)), 30, "the cluster")
        yield made
    finally:
        for each in made:
            each.stop(show_log=False)


def is_whole(node):
    told = node.ask("CLUSTER INFO")
    return "cluster_state:ok" in told and "cluster_known_nodes:3" in told


async def send_to_another(sender_node, receiver_node):
    """Return how many processes received a message, by the sender's count."""
    sender, receiver = PubSubLayer(sender_node.url), PubSubLayer(receiver_node.url)
    try:
        channel = await receiver.new_channel()
        await receiver.group_add(GROUP, channel)
        heard = await sender.group_send(GROUP, {"type": "news"})
        async with asyncio.timeout(10):
            assert (await receiver.receive(channel))["type"] == "news"
        return heard
    finally:
        await sender.flush()
        await receiver.flush()


async def test_single_node_works_as_one_server(nodes):
    assert await send_to_another(nodes[1], nodes[1]) == 1


async def test_message_through_another_node_arrives_uncounted(nodes):
    """A process would offer the parts of a reply only now and then: docs/deploy.md has
    one address for all processes.
    """
    assert await send_to_another(nodes[0], nodes[2]) == 0
