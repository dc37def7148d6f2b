"""What clients and providers should not send: the wire's own error, nothing lost, and
the provider is the operator's choice alone.
"""

import json

import pytest
from asgiref.sync import sync_to_async

from chatsite.endpoint import keys
from chatsite.turns.models import Turn
from memory.models import ModelCall
from memory.view import rebuilding
from tests.chatsite.scenes import violations

from .wire import Call

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


async def test_no_header_and_no_model_chooses_the_provider(key, upstream):
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


async def test_two_keys_are_none(key):
    call = Call(PATH, body_of(), key=key)
    call.scope["headers"].append((b"authorization", f"Bearer {key}".encode()))
    await call.run()
    assert call.status == 401


async def test_tools_of_a_megabyte_are_kept_to_the_byte(key, upstream):
    raw = body_of(tools=[{"type": "function", "function": {"name": "x" * 2**20}}])
    await Call(PATH, raw, key=key).run()
    assert upstream.requests[-1].raw == raw
    assert await is_whole()


@pytest.mark.parametrize(
    ("mode", "status", "state"),
    [
        ("hang", 504, ("failed", "timeout")),
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
