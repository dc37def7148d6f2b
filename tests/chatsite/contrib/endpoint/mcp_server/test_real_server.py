"""The MCP server of a server process, as an unmodified client uses it."""

import asyncio
import socket

import pytest

from tests.clients import Person
from tests.patience import wait_for

from .reading import connected, use

pytestmark = pytest.mark.server


@pytest.fixture
def site(start_site):
    return start_site(MCP_SERVER_ENABLED="true")


async def read(site, key, mode):
    async with connected(key, mode=mode, url=f"{site.url}/mcp") as client:
        listed = await use(client, "list_conversations")
        row = listed["conversations"][0]
        found = await use(
            client, "read_messages", conversation=row["conversation"], limit=2
        )
        return row, found["messages"]


def test_an_agent_reads_over_http(site):
    alice = Person(site, "alice")
    page = alice.create("langgraph")
    with alice.chat(page) as chat:
        chat.say("Where is Kyoto?")
    key = site.manage("create_key", "alice", "--scope", "read").strip()
    for mode in ("2026-07-28", "legacy"):
        row, messages = asyncio.run(read(site, key, mode))
        assert row["address"] == f"{site.url}{page}"
        assert messages[0]["text"] == "Where is Kyoto?"
        assert messages[1]["role"] == "assistant"
    _leave_as_reader(site, key)
    # A busy site notices a little later that they are gone.
    wait_for(lambda: _is_read(site, key), what="the places of those who are gone")


def _is_read(site, key):
    try:
        return asyncio.run(read(site, key, "auto"))
    except ExceptionGroup:  # in which the client's task group has the refusal
        return None


def _leave_as_reader(site, key):
    """A client that hangs up at once keeps no slot; one user has 64."""
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\n"
        f"Authorization: Bearer {key}\r\nContent-Type: application/json\r\n"
        f"Accept: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    for _ in range(70):
        with socket.create_connection(("127.0.0.1", site.port)) as line:
            line.sendall(head.encode() + body)
