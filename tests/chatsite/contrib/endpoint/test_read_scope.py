"""Keys that may read: the transcript, and what the model saw."""

import pytest
from asgiref.sync import sync_to_async

from chatsite.contrib.endpoint import keys

from .asgi_client import ask
from .test_chat_completions import complete, says

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def reader(alice):
    return keys.create_api_key(alice, "reader", scopes=["send", "read"])[1]


def address(call, what):
    name = call.headers["x-windowpane-conversation"]
    return f"/v1/conversations/{name}/{what}.json"


async def test_a_key_reads_what_was_said_and_what_the_model_saw(
    reader, alice, bob, upstream
):
    call = await complete(reader, says("user", "Hello"))
    status, _, told = await ask(address(call, "transcript"), key=reader)
    assert status == 200
    assert [each["text"] for each in told["messages"]] == ["Hello", "Reply to: Hello"]
    _, _, now = await ask(address(call, "context"), key=reader)
    assert now["sha256"] == call.headers["x-windowpane-request-sha256"]
    assert now["messages"] == upstream.requests[-1].messages
    for owner, scopes, status in ((alice, ["send"], 403), (bob, ["read"], 404)):
        _, other = await sync_to_async(keys.create_api_key)(owner, "x", scopes=scopes)
        found, _, answer = await ask(address(call, "transcript"), key=other)
        assert (found, "Hello" in str(answer)) == (status, False)


@pytest.mark.parametrize(
    "path", ["x", "11111111-1111-1111-1111-111111111111/context.json", "../models"]
)
async def test_unknown_conversation_is_not_found(reader, path):
    status, _, answer = await ask(f"/v1/conversations/{path}", key=reader)
    assert status == 404
    assert answer["error"]["message"]
