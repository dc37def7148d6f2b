"""Invalid input of clients and providers.

It gets the API's own error, nothing is lost, and only the operator chooses the
provider.
"""

import asyncio
import json
import threading

import pytest
from asgiref.sync import sync_to_async

from chatsite import asgi
from chatsite.contrib.endpoint import keys, request_handling
from chatsite.contrib.endpoint.relay.client_connection import MAX_BODY_BYTES
from chatsite.live.outbox import TRANSPORT
from chatsite.turns.models import Turn
from memory.models import Conversation, Message, ModelCall
from memory.view import rebuilding
from tests.chatsite.scenes import violations
from tests.fakes.upstream import MODES
from tests.patience import PATIENCE

from .asgi_client import Call

pytestmark = pytest.mark.django_db(transaction=True)
PATH = "/v1/chat/completions"


@pytest.fixture
def key(alice):
    return keys.create_api_key(alice, "llm")[1]


def body_of(text="Hi", **more):
    said = [{"role": "user", "content": text}]
    return json.dumps({"model": "ok", "messages": said, **more}).encode()


@sync_to_async
def is_whole():
    calls = ModelCall.objects.all()
    return violations() == [] and all(map(rebuilding.verify_context, calls))


async def test_provider_address_ignores_headers_and_model(key, upstream):
    model = "http://169.254.169.254/latest/"
    headers = {
        **{"x_forwarded_host": "evil.test", "x_upstream": "http://evil.test"},
        **{"forwarded": "host=evil.test", "cookie": "a=b", "x_api_base": "http://e"},
        **{"openai_organization": "org", "transfer_encoding": "chunked"},
        **{"connection": "authorization", "accept_encoding": "gzip"},
    }
    call = await Call(PATH, body_of(model=model), key=key, **headers).run()
    assert "evil" not in str(call.headers)
    sent = upstream.requests[-1]
    assert sent.path == "/v1/chat/completions"
    own = {"authorization", "host", "content-length", "accept-encoding"}
    assert {*sent.headers} <= own | {"content-type", "accept"}
    assert sent.headers["authorization"] == "Bearer sk-test-SECRET"
    assert sent.headers["accept-encoding"] == "identity"


async def test_a_scheme_that_a_client_makes_up_is_in_no_address(
    key, upstream, settings
):
    settings.BEHIND_PROXY = True
    headers = {"x_forwarded_proto": "javascript:alert(1)//"}
    call = await Call(PATH, body_of(), key=key, **headers).run()
    assert call.headers["x-windowpane-view"].startswith("http://testserver/c/")


async def test_request_with_two_keys_is_refused(key):
    call = Call(PATH, body_of(), key=key)
    call.scope["headers"].append((b"authorization", f"Bearer {key}".encode()))
    await call.run()
    assert call.status == 401


async def test_tools_of_a_megabyte_are_kept_to_the_byte(key, upstream):
    raw = body_of(tools=[{"type": "function", "function": {"name": "x" * 2**20}}])
    await Call(PATH, raw, key=key).run()
    assert upstream.requests[-1].raw == raw
    assert await is_whole()


@pytest.mark.parametrize("method", ["POST", "OPTIONS"])
async def test_answers_have_no_cors_headers(key, upstream, method):
    asking = {"origin": "https://evil.test", "cookie": "sessionid=x"}
    asking["access_control_request_headers"] = "authorization"
    call = await Call(PATH, body_of(), method=method, key=key, **asking).run()
    assert call.status == (200 if method == "POST" else 405)
    names = {name.partition("-")[0] for name in call.headers}
    assert names.isdisjoint({"access", "set"})


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("x_windowpane_mode", 400),
        ("x_session_affinity", 200),
        # It is passed on as it is, or the request is not.
        ("user_agent", 502),
        ("idempotency_key", 502),
    ],
)
async def test_a_line_in_a_header_adds_no_header(key, upstream, header, status):
    more = {header: "observe\r\nset-cookie: a=b"}
    call = await Call(PATH, body_of(), key=key, **more).run()
    assert call.status == status
    assert "a=b" not in str(call.headers)
    assert "a=b" not in str([each.headers for each in upstream.requests])
    assert await is_whole()


async def test_ten_thousand_messages_are_one_conversation(key, upstream):
    roles = ("user", "assistant")
    said = [{"role": roles[n % 2], "content": f"{n}"} for n in range(10_001)]
    raw = json.dumps({"model": "ok", "messages": said}).encode()
    call = await Call(PATH, raw, key=key).run()
    assert call.status == 200
    assert upstream.requests[-1].raw == raw
    assert await Message.objects.acount() == 10_002
    call = await sync_to_async(ModelCall.objects.select_related("conversation").get)()
    assert await sync_to_async(rebuilding.verify_context)(call)


async def test_disconnect_within_the_body_stores_nothing(key, upstream):
    call = Call(PATH, key=key, method="POST")
    part = {"type": "http.request", "body": body_of()[:20], "more_body": True}
    call.inbox.put_nowait(part)
    call.hang_up()
    await asgi.answer_http(call.scope, call.receive, call.send)
    assert call.status is None
    assert upstream.requests == []
    assert not await Conversation.objects.aexists()
    assert not request_handling._running


async def test_disconnect_before_the_answer_ends_the_turn(key, upstream):
    asked = threading.Event()
    call = Call(PATH, body_of(model="hang", stream=True), key=key)
    upstream.script(lambda x: (asked.set(), MODES["hang"](x)))
    task = asyncio.create_task(call.run())
    await asyncio.to_thread(asked.wait)
    call.hang_up()
    await task
    turn = await Turn.objects.aget()
    assert (turn.state, turn.error) == ("stopped", "client_gone")
    assert not request_handling._running
    assert await is_whole()


@pytest.mark.parametrize(
    ("mode", "status", "state"),
    [
        ("hang", 504, ("failed", "timeout")),
        ("html", 502, ("failed", "bad_response")),
        ("hang-mid", 200, ("truncated", "timeout")),
        ("bad-utf8", 200, ("truncated", "no_finish_reason")),
        ("reset-first", 502, ("failed", "unavailable")),
    ],
)
async def test_a_provider_that_stalls_or_sends_garbage(
    key, upstream, settings, mode, status, state
):
    settings.MODEL_FIRST_TOKEN_TIMEOUT = settings.MODEL_IDLE_TIMEOUT = 0.2
    call = await Call(PATH, body_of(model=mode, stream=True), key=key).run()
    assert call.status == status
    turn = await Turn.objects.aget()
    assert (turn.state, turn.error) == state
    assert await is_whole()


@pytest.mark.parametrize("size", [f"{MAX_BODY_BYTES + 1}", "9" * 4_400])
async def test_a_body_that_is_said_to_be_too_large_is_not_read(key, upstream, size):
    call = await Call(PATH, body_of(), key=key, content_length=size).run()
    assert call.status == 413
    # Both halves of it are still there.
    assert call.inbox.qsize() == 2
    assert upstream.requests == []
    assert not await Conversation.objects.aexists()


class DeafTransport:
    """The transport of a client that reads nothing."""

    takes_long = is_cut = False

    async def drained(self):
        return False

    def cut_off(self):
        self.is_cut = True


async def test_client_that_reads_nothing_is_cut_off(key, upstream):
    call = Call(PATH, body_of(model="drip", stream=True), key=key)
    call.scope["extensions"] = {TRANSPORT: (deaf := DeafTransport())}
    await call.run()
    assert (deaf.takes_long, deaf.is_cut) == (True, True)
    assert await sync_to_async(upstream.wait_closed_early)()
    turn = await Turn.objects.aget()
    assert (turn.state, turn.error) == ("stopped", "client_gone")
    assert not request_handling._running
    assert await is_whole()


def send_garbage(x):
    x.open()
    x.write(b'data: {"\xff\xfe": [\n\ndata: 7\n\nevent: x\ndata: []\n\n')
    x.close()


def send_unknown_status(x):
    x.send_json([], 599)


@pytest.mark.parametrize(
    ("answer", "status", "state"),
    [
        (MODES["hang"], 504, ("failed", "timeout")),
        (MODES["html"], 502, ("failed", "bad_response")),
        (MODES["reset-first"], 502, ("failed", "unavailable")),
        (send_garbage, 200, ("failed", "bad_response")),
        (send_unknown_status, 599, ("failed", "unavailable")),
    ],
)
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses"])
async def test_provider_of_the_other_apis_stalls_or_sends_garbage(
    key, upstream, settings, path, answer, status, state
):
    settings.MODEL_FIRST_TOKEN_TIMEOUT = settings.MODEL_IDLE_TIMEOUT = 0.2
    settings.ANTHROPIC_API_KEY = "sk-ant-SECRET"
    settings.ANTHROPIC_BASE_URL = upstream.url.removesuffix("/v1")
    upstream.script(answer)
    said = [{"role": "user", "content": "Hi"}]
    name = "messages" if path == "/v1/messages" else "input"
    raw = json.dumps({"model": "ok", name: said, "stream": True}).encode()
    call = await Call(path, raw, key=key).run()
    assert call.status == status
    if status in (502, 504):
        told = json.loads(call.answer)
        assert told["error"]["message"].endswith(".")
        assert told.get("type", "error") == "error"
    assert b"SECRET" not in call.answer
    turn = await Turn.objects.aget()
    assert (turn.state, turn.error) == state
    assert await is_whole()


@pytest.mark.parametrize(
    "name",
    ["resp_1/../../files", "..", "%2e%2e", "resp_1\r\nhost: evil", "//evil.test"],
)
async def test_response_id_cannot_be_an_address(key, upstream, name):
    call = await Call(f"/v1/responses/{name}", key=key).run()
    assert call.status == 404
    assert upstream.requests == []


async def test_a_history_that_claims_replies_joins_no_conversation(key, upstream):
    long = "The plan is to leave the harbour before the sun is up. " * 8
    upstream.script(MODES["story"])
    served = await Call(PATH, body_of("What is the plan?"), key=key).run()
    assert served.status == 200
    said = [
        {"role": "user", "content": "What is the plan?"},
        {"role": "assistant", "content": long},
        {"role": "user", "content": "And then?"},
    ]
    raw = json.dumps({"model": "ok", "messages": said}).encode()
    for _ in range(2):
        claimed = await Call(PATH, raw, key=key).run()
        assert claimed.headers["x-windowpane-lineage"] == "new"
    # Claimed messages are marked as such and prove nothing.
    told = Message.objects.filter(text=long)
    assert await told.acount() == 2
    assert not await told.filter(imported_at=None).aexists()
    assert await Conversation.objects.acount() == 3
    assert await is_whole()


async def test_two_hundred_clients_at_once_are_answered_and_one_more_is_not(
    upstream, settings, django_user_model
):
    settings.MESSAGES_PER_MINUTE = settings.CONVERSATIONS_PER_MINUTE = 1_000
    settings.PROCESSOR_SHARE_PER_USER = 100.0
    came, go_on = threading.Semaphore(0), threading.Event()

    def hold(x):
        came.release()
        go_on.wait(60 * PATIENCE)
        MODES["ok"](x)

    upstream.script(*[hold] * request_handling.MAX_RUNNING)
    made = []
    for number in range(5):
        create = sync_to_async(django_user_model.objects.create_user)
        owner = await create(f"person{number}")
        made += [(await sync_to_async(keys.create_api_key)(owner, "llm"))[1]] * 40
    calls = [Call(PATH, body_of(f"Hi {n}"), key=k) for n, k in enumerate(made)]
    running = [asyncio.create_task(call.run()) for call in calls]
    for _ in calls:
        assert await asyncio.to_thread(came.acquire, timeout=60 * PATIENCE)
    more = await Call(PATH, body_of("One more"), key=made[0]).run()
    assert (more.status, more.headers["retry-after"]) == (503, "2")
    go_on.set()
    await asyncio.gather(*running)
    assert {call.status for call in calls} == {200}
    for number, call in enumerate(calls):
        [choice] = json.loads(call.answer)["choices"]
        assert choice["message"]["content"] == f"Reply to: Hi {number}"
    assert (
        await Turn.objects.filter(state="done").acount() == request_handling.MAX_RUNNING
    )
    assert not request_handling._running
    assert await sync_to_async(violations)() == []
