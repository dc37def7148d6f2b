"""Requests that begin no turn: how often they may come, and who is recorded for what
they read."""

import asyncio
import json

import pytest
from asgiref.sync import sync_to_async

from chatsite.contrib.endpoint import keys, request_handling
from chatsite.contrib.endpoint.apis import APIS
from chatsite.contrib.endpoint.relay import provider_answer
from chatsite.ops import load
from chatsite.review.models import AccessEvent
from tests.fakes.upstream import Upstream

from .asgi_client import Call, ask
from .mcp_server.reading import connected, use
from .test_chat_completions import body_of, complete, says

pytestmark = pytest.mark.django_db(transaction=True)
MODELS = "/v1/models"
COUNT = "/v1/messages/count_tokens"
RESPONSES = "/v1/responses"


@pytest.fixture
def key(alice):
    return keys.create_api_key(alice, "llm", scopes=["send", "read"])[1]


async def ask_models(key, times=1):
    answers = await asyncio.gather(*(ask(MODELS, key=key) for _ in range(times)))
    return [status for status, *_ in answers], answers[-1][2]


async def test_models_are_asked_of_the_provider_once(key, bob, upstream, monkeypatch):
    _, other = await sync_to_async(keys.create_api_key)(bob, "llm")
    found = await asyncio.gather(*(ask_models(each, 20) for each in (key, other)))
    assert [statuses for statuses, _ in found] == [[200] * 20] * 2
    assert "ok" in [each["id"] for each in found[0][1]["data"]]
    await ask_models(key)
    assert len(upstream.requests) == 1
    monkeypatch.setattr(provider_answer, "MODELS_SECONDS", -1)
    await ask_models(key)
    assert len(upstream.requests) == 2


async def test_models_are_asked_again_after_a_failure(key, settings):
    settings.OPENAI_API_KEY = "sk-test"
    settings.OPENAI_BASE_URL = "http://127.0.0.1:9"
    assert (await ask_models(key, 3))[0] == [502] * 3
    with Upstream() as server:
        failed = provider_answer._listed["http://127.0.0.1:9/models"]
        provider_answer._listed[f"{server.url}/models"] = failed
        settings.OPENAI_BASE_URL = server.url
        assert (await ask_models(key))[0] == [200]


async def test_models_reach_others_when_the_first_client_hangs_up(upstream):
    wire = APIS[0]
    first = asyncio.create_task(provider_answer.list_upstream_models(wire))
    second = asyncio.create_task(provider_answer.list_upstream_models(wire))
    await asyncio.sleep(0)
    first.cancel()
    assert "ok" in [each["id"] for each in await second]
    assert len(upstream.requests) == 1


async def test_models_take_a_slot(key, alice, monkeypatch):
    monkeypatch.setitem(
        request_handling._running, alice.pk, request_handling.MAX_USER_RUNNING
    )
    assert (await ask_models(key))[0] == [429]
    monkeypatch.undo()
    assert (await ask_models(key))[0] == [200]
    assert not request_handling._running


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (MODELS, b""),
        (COUNT, body_of(says("user", "Hello"))),
        (f"{RESPONSES}/resp_1", b""),
        ("/v1/conversations/x/transcript.json", b""),
    ],
)
async def test_requests_without_a_turn_are_rate_limited(key, bob, settings, path, body):
    settings.ENDPOINT_REQUESTS_PER_MINUTE = 3
    statuses = [(await ask(path, body, key=key))[0] for _ in range(4)]
    assert 429 not in statuses[:3]
    assert statuses[3] == 429
    _, headers, _ = await ask(path, body, key=key)
    assert 0 < int(headers["retry-after"]) <= 60
    _, other = await sync_to_async(keys.create_api_key)(bob, "x", scopes=keys.SCOPES)
    assert (await ask(path, body, key=other))[0] != 429
    # Messages are counted by the database, with those of pages.
    assert (await complete(key, says("user", "Hello"))).status == 200
    settings.ENDPOINT_REQUESTS_PER_MINUTE = 0
    assert (await ask(path, body, key=key))[0] != 429


@pytest.mark.parametrize(
    ("refusal", "status"), [(load.TOO_LARGE, 413), (load.TOO_BUSY, 429)]
)
async def test_body_that_was_not_received_is_refused(key, refusal, status):
    call = Call("/v1/chat/completions", b"", method="POST", key=key)
    call.scope[refusal] = True
    assert (await call.run()).status == status
    assert json.loads(call.answer)["error"]["message"]


@pytest.fixture
def gateway(admin_user, settings):
    settings.GATEWAY_USER_HEADER = "X-User"
    settings.MCP_SERVER_ENABLED = True
    return keys.create_api_key(admin_user, "g", kind="gateway", scopes=keys.SCOPES)


@sync_to_async
def read_events():
    rows = AccessEvent.objects.order_by("pk")
    columns = ("user__username", "username", "owner__username", "conversation")
    return list(rows.values_list(*columns, "target"))


async def test_reader_of_a_gateway_is_its_own_user(gateway, alice, upstream):
    row, key = gateway
    call = await complete(key, says("user", "Hello"), headers={"x_user": "alice"})
    name = call.headers["x-windowpane-conversation"]
    path = f"/v1/conversations/{name}/transcript.json"
    assert (await ask(path, key=key, x_user="alice"))[0] == 200
    async with connected(key, **{"x-user": "alice"}) as client:
        await use(client, "read_messages", conversation=name)
    assert [(*each[:3], str(each[3]), each[4]) for each in await read_events()] == [
        ("admin", "admin", "alice", name, f"list key {row.hint} {part}")
        for part in ("transcript", "read_messages")
    ]


async def test_reply_that_a_gateway_fetches_again_is_recorded(gateway, alice, key):
    asked = json.dumps({"model": "ok", "input": "Hello"}).encode()
    _, _, reply = await ask(RESPONSES, asked, key=gateway[1], x_user="alice")
    path = f"{RESPONSES}/{reply['id']}"
    assert (await ask(path, key=gateway[1], x_user="alice"))[0] == 200
    [(user, _, owner, conversation, target)] = await read_events()
    assert (user, owner) == ("admin", "alice")
    assert conversation
    assert target.endswith(" response")
    # Alice's own client reads the answer to her own request.
    assert (await ask(path, key=key))[0] == 200
    assert len(await read_events()) == 1
