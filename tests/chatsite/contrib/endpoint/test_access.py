"""Keys of gateways, and requests while the store is away."""

import base64
import hashlib
import hmac
import json
import time
from collections import Counter
from io import StringIO

import pytest
from asgiref.sync import sync_to_async
from django.core.management import call_command
from django.db import IntegrityError, OperationalError
from django.utils import timezone

from chatsite.contrib.endpoint import keys
from chatsite.contrib.endpoint.access import outage
from chatsite.contrib.endpoint.access.gateway import find_token_secret, read_token
from chatsite.contrib.endpoint.relay.client_connection import Connection, GoneError
from chatsite.contrib.endpoint.relay.provider_answer import ProviderAnswer
from memory.models import Conversation

from .test_chat_completions import body_of, complete, says

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "of-this-test-alone"


def part(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def sign(claims, secret=SECRET, alg="HS256"):
    claims = claims if isinstance(claims, str) else part(claims)
    signed = f"{part({'alg': alg, 'typ': 'JWT'})}.{claims}"
    digest = hmac.new(secret.encode(), signed.encode(), hashlib.sha256).digest()
    return f"{signed}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


def claim(email, seconds=300):
    return {"email": email, "iss": "open-webui", "exp": time.time() + seconds}


# Of two people: which of them is meant, two readers could decide differently.
TWO_ADDRESSES = '{"exp": 9e9, "email": "bob@example.org", "email": "alice@example.org"}'
TWO_ADDRESSES = base64.urlsafe_b64encode(TWO_ADDRESSES.encode()).rstrip(b"=").decode()


@pytest.fixture
def gateway(admin_user):
    return keys.create_api_key(admin_user, "Open WebUI", kind="gateway")[1]


@pytest.fixture
def people(alice, bob):
    for person in (alice, bob):
        person.email = f"{person.username}@example.org"
        person.save()


async def test_gateway_sends_for_the_user_of_its_token(
    gateway, people, upstream, settings
):
    settings.GATEWAY_JWT_SECRET = SECRET
    for name in ("alice", "bob"):
        token = sign(claim(f"{name.upper()}@example.org"))
        sent = {"x_openwebui_user_jwt": token}
        call = await complete(gateway, says("user", "Hello"), headers=sent)
        assert call.status == 200
    owners = Conversation.objects.order_by("pk").values_list(
        "owner__username", flat=True
    )
    assert [each async for each in owners] == ["alice", "bob"]


async def test_gateway_with_an_unknown_user_is_refused(
    gateway, people, bob, upstream, settings
):
    name = {"x_windowpane_user": "alice"}
    refused = [await complete(gateway, says("user", "Hi"), headers=name)]
    settings.GATEWAY_JWT_SECRET = SECRET
    bob.is_active = False
    await bob.asave()
    for token in (
        "",
        "a.b.c",
        sign(claim("alice@example.org"), secret="another"),
        sign(claim("alice@example.org"), alg="none"),
        sign(claim("alice@example.org", seconds=-300)),
        sign({"email": "alice@example.org"}),
        sign(claim("mallory@example.org")),
        sign(TWO_ADDRESSES),
        sign(claim("bob@example.org")),
        sign(claim("al\u0131ce@example.org")),
        sign(claim("alice@example.org.evil.test")),
        sign(claim("")),
    ):
        sent = {"x_openwebui_user_jwt": token, **name}
        refused.append(await complete(gateway, says("user", "Hi"), headers=sent))
    assert {call.status for call in refused} == {403}
    assert len({call.answer for call in refused}) == 1
    assert upstream.requests == []


@pytest.mark.parametrize(
    ("own", "audience", "status"),
    [
        ("", None, 200),
        ("", "https://chat.example", 200),
        ("", ["https://other.example", "https://chat.example"], 200),
        *(("", wrong, 403) for wrong in ("https://other.example", "", [], {}, 1)),
        ("windowpane", "windowpane", 200),
        ("windowpane", "https://chat.example", 403),
        ("windowpane", None, 403),
    ],
)
async def test_token_for_another_audience_is_refused(
    own, audience, status, gateway, people, upstream, settings
):
    settings.GATEWAY_JWT_SECRET, settings.GATEWAY_JWT_AUDIENCE = SECRET, own
    settings.SITE_ORIGINS = ["https://chat.example"]
    named = {} if audience is None else {"aud": audience}
    sent = {"x_openwebui_user_jwt": sign(claim("alice@example.org") | named)}
    call = await complete(gateway, says("user", "Hello"), headers=sent)
    assert call.status == status


async def test_token_of_one_key_is_invalid_for_another(
    admin_user, people, upstream, settings
):
    settings.GATEWAY_JWT_SECRET, settings.GATEWAY_SECRET_PER_KEY = SECRET, True
    made = [
        await sync_to_async(keys.create_api_key)(admin_user, name, kind="gateway")
        for name in "ab"
    ]
    secrets = [find_token_secret(row) for row, _ in made]
    for _, key in made:
        for secret in (*secrets, SECRET):
            token = sign(claim("alice@example.org"), secret=secret)
            sent = {"x_openwebui_user_jwt": token}
            call = await complete(key, says("user", "Hello"), headers=sent)
            is_own = secret == secrets[[each for _, each in made].index(key)]
            assert call.status == (200 if is_own else 403)


def test_command_prints_the_secret_of_a_key_beside_it(admin_user, settings):
    settings.GATEWAY_JWT_SECRET, settings.GATEWAY_SECRET_PER_KEY = SECRET, True
    key, beside = StringIO(), StringIO()
    call_command("create_key", "admin", "--kind=gateway", stdout=key, stderr=beside)
    row = keys.find_api_key(key.getvalue().strip())
    assert find_token_secret(row) in beside.getvalue()


async def test_user_header_counts_only_if_configured(
    gateway, people, admin_user, upstream, settings
):
    settings.GATEWAY_USER_HEADER = "X-Windowpane-User"
    sent = {"x_windowpane_user": "alice"}
    call = await complete(gateway, says("user", "Hello"), headers=sent)
    assert call.status == 200
    admin_user.is_staff = False
    await admin_user.asave()
    call = await complete(gateway, says("user", "Hello"), headers=sent)
    assert call.status == 403


def test_malformed_token_has_no_claims():
    assert read_token(sign([1]), SECRET) == {}
    assert read_token("x" * 10_000, SECRET) == {}


async def test_request_that_the_database_refuses_is_not_forwarded(
    alice, upstream, settings, monkeypatch
):
    settings.ENDPOINT_WITHOUT_STORE = "open"
    _, key = await sync_to_async(keys.create_api_key)(alice, "llm")

    def fail(*_):
        raise IntegrityError("refused")

    monkeypatch.setattr(
        "chatsite.contrib.endpoint.store.request_store.RequestWriter.store_first", fail
    )
    assert (await complete(key, says("user", "Hello"))).status == 503
    assert upstream.requests == []


async def test_cached_key_is_refused_once_it_has_expired(alice):
    row, key = await sync_to_async(keys.create_api_key)(alice, "llm")
    outage.remember_key(key, row)
    assert outage.recall_key(key) == row
    row.expires_at = timezone.now()
    assert outage.recall_key(key) is None


@pytest.mark.parametrize("mode", ["closed", "open"])
async def test_request_without_a_database_is_forwarded_or_refused(
    mode, alice, upstream, settings, monkeypatch
):
    settings.ENDPOINT_WITHOUT_STORE = mode
    _, key = await sync_to_async(keys.create_api_key)(alice, "llm", mode="bound")
    await complete(key, says("user", "Hello"))
    before = outage.NOT_KEPT._value.get()

    def fail(*_):
        raise OperationalError("away")

    monkeypatch.setattr(keys, "find_api_key", fail)
    monkeypatch.setattr(
        "chatsite.contrib.endpoint.store.request_store.RequestWriter.store_first", fail
    )
    raw = body_of(says("user", "Are you there?"))
    call = await complete(key, says("user", "Are you there?"))
    if mode == "closed":
        assert call.status == 503
        assert len(upstream.requests) == 1
        return
    assert call.status == 200
    assert upstream.requests[-1].raw == raw
    assert call.answer == bytes(upstream.requests[-1].answered)
    assert call.headers["x-windowpane-mode"] == "not-kept"
    assert outage.NOT_KEPT._value.get() == before + 1
    stranger = await complete("wp_" + "x" * 43, says("user", "Hi"))
    assert stranger.status == 401


async def test_disconnect_ends_a_forwarded_request(alice):
    row, _ = await sync_to_async(keys.create_api_key)(alice, "llm")
    ended = []

    async def fetch():
        try:
            yield b"one"
            yield b"two"
        finally:
            ended.append("closed")

    async def send(message):
        if message.get("body"):
            raise GoneError

    answer = ProviderAnswer(200, {}, outage._count_chunks(row, fetch()))
    with pytest.raises(GoneError):
        await Connection({}, None, send).pass_on(answer, {})
    assert ended == ["closed"]


@pytest.mark.parametrize("whose", ["key", "person"])
async def test_forwarding_stops_at_the_tokens_of_a_day(
    whose, alice, upstream, settings, monkeypatch
):
    settings.ENDPOINT_WITHOUT_STORE = "open"
    monkeypatch.setattr(outage, "_forwarded", Counter())
    settings.TOKENS_PER_DAY = 1_500 if whose == "person" else 0
    own = 1_500 if whose == "key" else None
    made = [
        await sync_to_async(keys.create_api_key)(alice, "llm", tokens_per_day=own)
        for _ in range(2)
    ]
    for _, key in made:
        assert (await complete(key, says("user", "Hello"))).status == 200

    def fail(*_):
        raise OperationalError("away")

    monkeypatch.setattr(keys, "find_api_key", fail)
    monkeypatch.setattr(
        "chatsite.contrib.endpoint.store.request_store.RequestWriter.store_first", fail
    )
    (_, first), (_, second) = made
    said = says("user", "mode=story:1:2000:0")
    answers = [await complete(first, said) for _ in range(2)]
    assert [call.status for call in answers] == [200, 429]
    assert json.loads(answers[1].answer)["error"]["code"] == "quota"
    assert int(answers[1].headers["retry-after"]) > 0
    # The other key has a day of its own, but not its owner.
    other = await complete(second, says("user", "Hello again"))
    assert other.status == (200 if whose == "key" else 429)
    assert len(upstream.requests) == (4 if whose == "key" else 3)
