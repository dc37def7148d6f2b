"""Access to the MCP server, and the limits of one user."""

import json

import pytest
from asgiref.sync import sync_to_async
from django.core.checks import run_checks
from django.urls import reverse

from chatsite.contrib.endpoint import asgi, keys, request_handling
from chatsite.contrib.endpoint.mcp_server import access_check, checks
from chatsite.ops.entrances import find_entrance
from tests.chatsite.contrib.endpoint.asgi_client import Call, ask

from .reading import connected, use

pytestmark = pytest.mark.django_db(transaction=True)
PING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()


def post(key, body=PING, **headers):
    return ask("/mcp", body, key=key, accept="application/json", **headers)


async def test_server_is_missing_when_disabled(reader, settings):
    assert (await post(reader))[0] == 200
    settings.MCP_SERVER_ENABLED = False
    assert (await post(reader))[0] == 404


async def test_wrong_key_gets_the_answer_of_the_apis(reader):
    for wrong in ("", "wp_wrong", "x" * 500):
        found = await post(wrong)
        other = await ask("/v1/chat/completions", b"{}", key=wrong)
        assert found == other
        assert found[0] == 401


async def test_a_key_that_may_only_send_reads_nothing(alice):
    _, key = await sync_to_async(keys.create_api_key)(alice, "x", scopes=["send"])
    status, _, answer = await post(key)
    assert (status, answer["error"]["code"]) == (403, "not_allowed")


@pytest.mark.parametrize("method", ["GET", "DELETE", "OPTIONS"])
async def test_streams_are_not_offered(reader, method):
    status, _, _ = await ask("/mcp", method=method, key=reader)
    assert status == 405


async def test_pages_of_other_sites_read_nothing(reader):
    assert (await post(reader, origin="http://evil.example"))[0] == 403
    assert (await post(reader, origin="http://testserver"))[0] == 200
    assert (await post(reader, host="evil.example"))[0] == 400


async def test_requests_of_a_user_are_rate_limited(reader, alice, bob, settings):
    settings.MCP_REQUESTS_PER_MINUTE = 2
    assert [(await post(reader))[0] for _ in range(3)] == [200, 200, 429]
    status, headers, _ = await post(reader)
    assert 0 < int(headers["retry-after"]) <= 60
    _, other = await sync_to_async(keys.create_api_key)(bob, "x", scopes=["read"])
    assert (await post(other))[0] == 200
    settings.MCP_REQUESTS_PER_MINUTE = 0
    assert (await post(reader))[0] == 200


async def test_slots_are_shared_with_all_requests(reader, alice, monkeypatch):
    monkeypatch.setitem(
        request_handling._running, alice.pk, request_handling.MAX_USER_RUNNING
    )
    assert (await post(reader))[0] == 429
    monkeypatch.undo()
    assert not request_handling._running


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"[]", b"null", b'"x"', b"\xff", b"[" * 50_000, b"1" * 60_000),
        b'{"jsonrpc":"2.0","id":1}',
    ],
)
@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28", "1999-01-01"])
async def test_invalid_request_is_refused(reader, body, version):
    call = Call("/mcp", body, method="POST", key=reader, accept="application/json")
    call.scope["headers"].append((b"mcp-protocol-version", version.encode()))
    await call.run()
    assert call.status == 400
    assert not request_handling._running


async def test_a_large_body_is_refused(reader):
    call = Call("/mcp", b" " * 70_000, key=reader, accept="application/json")
    assert (await call.run()).status == 413


async def test_wrong_arguments_are_explained(reader):
    async with connected(reader) as client:
        for tool, given, words in (
            ("read_messages", {}, "conversation: Field required"),
            ("read_messages", {"conversation": "x"}, "conversation: "),
            ("list_conversations", {"limit": 51}, "limit: "),
            ("list_conversations", {"owner": 1}, "owner: "),
            ("search_transcripts", {"query": "\0"}, "A search needs words."),
            ("search_transcripts", {"query": "  "}, "A search needs words."),
            ("search_transcripts", {"query": "x" * 201}, "query: "),
        ):
            answer = await use(client, tool, **given)
            assert words in answer, (tool, given)


async def test_a_tool_that_is_not_there(reader):
    async with connected(reader) as client:
        with pytest.raises(Exception, match="There is no tool 'erase'"):
            await client.call_tool("erase", {})


async def test_a_site_without_the_library_says_so(reader, monkeypatch, settings):
    def fail(name):
        raise ImportError(name)

    monkeypatch.setattr(access_check, "import_module", fail)
    status, _, answer = await post(reader)
    assert (status, answer["error"]["code"]) == (503, "unavailable")
    monkeypatch.setattr(checks, "find_spec", lambda name: None)
    assert "chat.E009" in [each.id for each in run_checks()]
    settings.MCP_SERVER_ENABLED = False
    assert "chat.E009" not in [each.id for each in run_checks()]


def test_entrance_is_shared_with_the_apis():
    assert find_entrance("/mcp").answer is asgi.answer_api


def test_a_new_key_that_may_read_says_where(client, settings):
    values = {"name": "Agent", "days": "0", "mode": "observe", "may_read": "on"}
    page = client.post(reverse("api-key-make"), values)
    assert "http://testserver/mcp" in page.content.decode()
    page = client.post(reverse("api-key-make"), values | {"may_read": ""})
    assert "/mcp" not in page.content.decode()
    settings.MCP_SERVER_ENABLED = False
    page = client.post(reverse("api-key-make"), values)
    assert "/mcp" not in page.content.decode()
