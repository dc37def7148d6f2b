"""Scripts that send their newest message only: the history comes from here."""

import json

import pytest
from asgiref.sync import sync_to_async

from chatsite.contrib.endpoint import keys
from memory.models import Conversation

from .asgi_client import Call
from .test_chat_completions import PATH, body_of, complete, says, state

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def key(alice):
    return keys.create_api_key(alice, "script")[1]


def newest(call):
    name = call.headers["x-windowpane-conversation"]
    return {"x_windowpane_send": "newest", "x_windowpane_conversation": name}


async def test_the_newest_message_goes_on_what_is_here(key, upstream):
    call = await complete(key, says("system", "Be brief."), says("user", "Hello"))
    for text in ("And now?", "Thank you"):
        call = await complete(key, says("user", text), headers=newest(call))
        assert call.headers["x-windowpane-lineage"] == "continued"
    assert [each["content"] for each in upstream.requests[-1].messages] == [
        *("Be brief.", "Hello", "Reply to: Hello"),
        *("And now?", "Reply to: And now?", "Thank you"),
    ]
    [rows] = await state()
    assert rows[-1] == "a: Reply to: Thank you"


async def test_results_of_tools_follow_their_calls(key, upstream):
    function = {"name": "add", "arguments": '{"a": 1}'}
    asked = {"id": "c1", "type": "function", "function": function}
    message = {"role": "assistant", "content": None, "tool_calls": [asked]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    upstream.script(lambda x: x.send_json({"choices": [choice]}))
    call = await complete(key, says("user", "One and one?"))
    result = says("tool", "2", tool_call_id="c1")
    await complete(key, result, headers=newest(call))
    assert [each["role"] for each in upstream.requests[-1].messages] == [
        *("user", "assistant", "tool"),
    ]
    [rows] = await state()
    assert [row[0] for row in rows] == ["u", "a", "t", "a"]


async def test_continuing_needs_a_conversation_of_the_owner(key, bob, upstream):
    other = (await sync_to_async(keys.create_api_key)(bob, "script"))[1]
    call = await complete(other, says("user", "Hello"))
    before = len(upstream.requests)
    answers = [
        await complete(key, says("user", "More"), headers=newest(call)),
        await complete(
            key,
            says("user", "More"),
            headers={**newest(call), "x_windowpane_conversation": "nonsense"},
        ),
    ]
    assert [each.status for each in answers] == [404, 404]
    assert answers[0].answer == answers[1].answer
    raw = body_of(says("user", "More"))
    lone = await Call(PATH, raw, key=key, x_windowpane_send="newest").run()
    assert lone.status == 400
    assert "x-windowpane-conversation" in json.loads(lone.answer)["error"]["message"]
    assert len(upstream.requests) == before
    assert await Conversation.objects.acount() == 1
