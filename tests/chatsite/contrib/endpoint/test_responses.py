"""OpenAI's Responses API in observe mode."""

import json

import pytest
from asgiref.sync import sync_to_async

from chatsite.contrib.endpoint import keys
from chatsite.contrib.endpoint.models import ApiKey, BodyPiece, ClientRequest
from chatsite.turns.models import Allowance, Turn
from memory.models import Conversation, ModelCall
from memory.view import rebuilding
from tests.chatsite.scenes import violations
from tests.fakes import wires

from .asgi_client import Call, ask

pytestmark = pytest.mark.django_db(transaction=True)
PATH = "/v1/responses"
LONG = "A sentence that no one else says, long enough to be kept once. " * 3


@pytest.fixture
def key(alice):
    return keys.create_api_key(alice, "Codex")[1]


def send(key, given, **more):
    body = {"model": "ok", "instructions": "Be brief.", "input": given, **more}
    return Call(PATH, json.dumps(body).encode(), key=key).run()


def user(text):
    return {"role": "user", "content": [{"type": "input_text", "text": text}]}


def result_of(call, text):
    return {
        "type": "function_call_output",
        "call_id": call["call_id"],
        "output": text,
    }


def replying(*calls, text=""):
    reply = wires.Reply(text, [wires.Call(name, "{}") for name in calls])

    def answer(x):
        if not x.is_stream:
            return x.send_json(wires.write_whole("responses", "ok", reply))
        for event in wires.write_events("responses", "ok", reply):
            x.write(event)
        x.close()

    return answer


def read_output(call):
    """Return the output of an answer, whole or in events."""
    if call.answer.startswith(b"{"):
        return json.loads(call.answer)
    return json.loads(call.answer.rpartition(b"data: ")[2])["response"]


@sync_to_async
def state():
    """Each conversation with its messages; nothing is wrong with any."""
    assert violations() == []
    for call in ModelCall.objects.select_related("conversation"):
        assert rebuilding.verify_context(call), call.refs
    return [
        [f"{row.role[0]}: {row.text}" for row in each.messages.order_by("seq")]
        for each in Conversation.objects.order_by("pk")
    ]


async def test_a_conversation_with_tools_that_sends_its_history(key, upstream):
    upstream.script(replying("add", "add", text="Adding."), replying(text="Two."))
    said = [user("One and one?")]
    first = await send(key, said, stream=True)
    assert first.answer == bytes(upstream.requests[-1].answered)
    assert upstream.requests[-1].raw == first.body
    assert upstream.requests[-1].path == PATH
    output = read_output(first)["output"]
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "content": None}
    calls = [each for each in output if each["type"] == "function_call"]
    results = [result_of(calls[1], "2"), result_of(calls[0], "1")]
    second = await send(key, [*said, thought, *output, *results])
    assert second.headers["x-windowpane-lineage"] == "continued"
    assert await state() == [
        ["u: One and one?", "a: Adding.", "t: 1", "t: 2", "a: Two."]
    ]
    turn = await Turn.objects.select_related("call", "reply").aget()
    assert (turn.state, turn.reply.text) == ("done", "Two.")
    used = turn.call.tokens_input, turn.call.tokens_cached, turn.call.tokens_output
    assert used == (9, 4, 5)
    assert await Conversation.objects.filter(system_prompt="Be brief.").aexists()


async def test_previous_response_replaces_the_history(key, upstream):
    first = read_output(await send(key, LONG))
    upstream.script(replying("add"), replying(text="Two."), replying(text="Three."))
    again = {"previous_response_id": first["id"]}
    called = await send(key, "One and one?", **again, stream=True)
    assert called.headers["x-windowpane-lineage"] == "continued"
    output = read_output(called)
    results = [result_of(output["output"][0], "2")]
    last = await send(key, results, previous_response_id=output["id"])
    other = await send(key, [user("And two?")], **again)
    assert last.headers["x-windowpane-lineage"] == "continued"
    assert other.headers["x-windowpane-lineage"] == "branch"
    begun = [f"u: {LONG}", f"a: Reply to: {LONG}"]
    assert await state() == [
        [*begun, "u: One and one?", "a: ", "t: 2", "a: Two."],
        [*begun, "u: And two?", "a: Three."],
    ]
    # The same history, written out, goes on, too.
    items = [user(LONG), *first["output"], user("And two?")]
    whole = await send(key, [*items, *read_output(other)["output"], user("Thanks")])
    assert whole.headers["x-windowpane-lineage"] == "continued"
    assert len(await state()) == 2
    pieces = [each async for each in BodyPiece.objects.values_list("text", flat=True)]
    assert not [each for each in pieces if LONG[:40] in each]


async def test_response_of_another_user_is_not_found(key, bob, upstream, settings):
    response_id = read_output(await send(key, "Hello"))["id"]
    _, his = await sync_to_async(keys.create_api_key)(bob, "his")
    status, _, body = await ask(f"{PATH}/{response_id}", key=his)
    assert (status, body["error"]["code"]) == (404, "not_found")
    stolen = await send(his, "And?", previous_response_id=response_id)
    assert json.loads(stolen.answer)["error"]["code"] == "previous_response_not_found"
    assert len(upstream.requests) == 1
    for path, given in ((PATH, "x/y"), (f"{PATH}/compact", response_id)):
        raw = {"model": "ok", "input": "And?", "previous_response_id": given}
        refused = await Call(path, json.dumps(raw).encode(), key=his).run()
        assert refused.status in (400, 404)
    assert len(upstream.requests) == 1
    # An unknown id could be another user's, unless there is no other user.
    elsewhere = {"previous_response_id": "resp_elsewhere"}
    assert (await send(his, "And?", **elsewhere)).answer == stolen.answer
    assert len(upstream.requests) == 1
    settings.ENDPOINT_PROVIDER_IDS = "passed"
    again = await send(his, "And?", previous_response_id=response_id)
    assert again.answer == stolen.answer
    other = await send(his, "And?", **elsewhere)
    assert (other.status, other.headers["x-windowpane-lineage"]) == (200, "single")


async def test_a_response_is_fetched_from_the_provider(key, upstream):
    response_id = read_output(await send(key, "Hello"))["id"]
    call = await Call(f"{PATH}/{response_id}", key=key).run()
    asked = upstream.requests[-1]
    assert (call.status, asked.path) == (200, f"{PATH}/{response_id}")
    assert call.answer == bytes(asked.answered)
    for path in (f"{PATH}/resp_unknown", f"{PATH}/..%2Fmodels", f"{PATH}/a/b"):
        assert (await ask(path, key=key))[0] == 404
    assert len(upstream.requests) == 2


async def test_a_compacted_history_is_known(key, upstream):
    said = [user("One and one?")]
    said += read_output(await send(key, said))["output"]
    short = [said[0], {"type": "compaction", "encrypted_content": "gAAA" * 9}]
    value = {"object": "response.compaction", "output": short}
    value["usage"] = {"input_tokens": 1_000, "output_tokens": 100}
    upstream.script(lambda x: x.send_json(value))
    raw = json.dumps({"model": "ok", "input": said}).encode()
    call = await Call(f"{PATH}/compact", raw, key=key).run()
    assert call.answer == bytes(upstream.requests[-1].answered)
    assert upstream.requests[-1].raw == raw
    used = (await ApiKey.objects.aget()).tokens_used
    assert used == (await Allowance.objects.aget()).tokens_used > 1_100
    gone_on = await send(key, [*short, user("And two?")])
    assert gone_on.headers["x-windowpane-lineage"] == "client-compacted"
    assert [len(rows) for rows in await state()] == [4]


async def test_demo_model_knows_the_previous_response(key):
    first = read_output(await send(key, "My name is Ada. Where is Kyoto?"))
    stream = await send(
        key, "What is my name?", previous_response_id=first["id"], stream=True
    )
    assert stream.answer.startswith(b"event: response.created\n")
    assert stream.headers["x-windowpane-lineage"] == "continued"
    second = read_output(stream)
    assert "Ada" in second["output"][0]["content"][0]["text"]
    status, _, kept = await ask(f"{PATH}/{second['id']}", key=key)
    assert (status, kept["output"]) == (200, second["output"])
    raw = json.dumps({"model": "ok", "input": "My name is Ada."}).encode()
    _, _, short = await ask(f"{PATH}/compact", raw, key=key)
    assert "Ada" in short["output"][0]["content"][0]["text"]
    assert len(await state()) == 1


@pytest.mark.parametrize(
    "more", [{"input": []}, {"input": 7}, {"background": True}, {"model": ""}]
)
async def test_invalid_request_stores_nothing(key, upstream, more):
    call = await send(key, more.pop("input", "Hello"), **more)
    assert (call.status, upstream.requests) == (400, [])
    assert json.loads(call.answer)["error"]["message"].endswith(".")
    assert not await ClientRequest.objects.aexists()


@pytest.mark.parametrize(
    ("event", "turn", "error"),
    [
        ({"type": "response.failed", "response": {"status": "failed"}}, "failed", ""),
        ({"type": "error", "message": "Overloaded."}, "failed", ""),
        (
            {
                "type": "response.incomplete",
                "response": {
                    "status": "incomplete",
                    "incomplete_details": {"reason": "max_output_tokens"},
                },
            },
            "truncated",
            "length",
        ),
        ({"type": "response.in_progress"}, "truncated", "no_finish_reason"),
        ({"type": "response.completed"}, "truncated", "no_finish_reason"),
        ({"type": "response.completed", "response": {"output": [7]}}, "done", ""),
        ({"type": "response.output_item.done"}, "truncated", "no_finish_reason"),
    ],
)
async def test_failed_stream_ends_the_turn(key, upstream, event, turn, error):
    delta = {"type": "response.output_text.delta", "delta": "Half"}

    def answer(x):
        x.event(delta)
        x.event(event)
        x.close()

    upstream.script(answer)
    await send(key, "Hello", stream=True)
    ended = await Turn.objects.select_related("reply").aget()
    assert (ended.state, ended.reply.text) == (turn, "Half")
    assert ended.error == (error or ("unavailable" if turn == "failed" else ""))


async def test_a_changed_configuration_stays_in_the_history(key, upstream):
    """langchain-openai sends it before the question that it begins with."""
    update = {"type": "configuration_update", "reasoning": {"effort": "high"}}
    first = await send(key, [user(LONG)])
    items = [user(LONG), *read_output(first)["output"]]
    second = await send(key, [*items, update, user("Think.")])
    assert second.headers["x-windowpane-lineage"] == "continued"
    items += [update, user("Think."), *read_output(second)["output"]]
    third = await send(key, [*items, user("Thanks.")])
    assert third.headers["x-windowpane-lineage"] == "continued"
    without = [each for each in items if each is not update]
    other = await send(key, [*without, user("And without?")])
    assert other.headers["x-windowpane-lineage"] == "branch"
    assert [len(each) for each in await state()] == [6, 6]
    assert (await state())[0][2] == "u: Think."
