"""Items of replies that a client names by their ids, in place of sending them again."""

import json

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from chatsite.contrib.endpoint import keys
from chatsite.contrib.endpoint.apis import OPENAI_RESPONSES
from chatsite.contrib.endpoint.apis.errors import ApiError
from chatsite.contrib.endpoint.models import BodyPiece, ClientConversation
from chatsite.contrib.endpoint.store.owner_history import NotOwnedError, OwnerHistory
from chatsite.contrib.endpoint.store.parsed_request import read_client_request
from chatsite.contrib.endpoint.store.sent_forms import read_changed_texts
from chatsite.contrib.endpoint.store.served_items import find_items
from chatsite.turns import commands
from memory import library
from memory.actions import EditChoice
from memory.models import Conversation, ModelCall

from .asgi_client import Call
from .test_responses import PATH, read_output, replying, result_of, send, state, user

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "The train to Kyoto leaves at seven, from platform twelve, each weekday."


@pytest.fixture
def key(alice):
    return keys.create_api_key(alice, "AI SDK")[1]


def name_items(output):
    return [{"type": "item_reference", "id": each["id"]} for each in output]


async def serve(key, said, **more):
    """Send these items, and add the ids of those that come back."""
    call = await send(key, said, **more)
    output = read_output(call)["output"]
    said += name_items(output)
    return call, output


async def talk(key, upstream, turns, **more):
    said, calls = [], []
    for turn in range(turns):
        upstream.script(
            replying("add", text=f"I add for the {turn}."),
            replying(text=f"{SECRET} Number {turn}."),
        )
        said.append(user(f"What of {turn}?"))
        call, output = await serve(key, said, **more)
        said.append(result_of(output[-1], f"It is {turn}."))
        calls += (call, (await serve(key, said, **more))[0])
    return calls, said


@pytest.mark.parametrize("stream", [False, True])
async def test_served_items_are_one_conversation(key, upstream, stream):
    calls, _ = await talk(key, upstream, 4, stream=stream)
    assert {each.headers["x-windowpane-lineage"] for each in calls[1:]} == {"continued"}
    assert [each.raw for each in upstream.requests] == [each.body for each in calls]
    [rows] = await state()
    assert len(rows) == 16
    assert not [row for row in rows if "[item]" in row]
    changed = sync_to_async(lambda: [*map(read_changed_texts, ModelCall.objects.all())])
    assert not [each for each in await changed() if each]


async def test_named_items_count_with_their_text(key, upstream):
    """The provider reads and charges them, not their names."""
    upstream.script(replying(text=SECRET * 60), replying(text="Yes."))
    said = [user("When does it leave?")]
    await serve(key, said)
    said.append(user("Is it sure?"))
    await serve(key, said)
    calls = ModelCall.objects.order_by("pk")
    first, second = [each.tokens_estimated async for each in calls]
    assert second > first + len(SECRET) * 60 // 4


async def test_references_to_reasoning_add_no_message(key, upstream):
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted": "gA" * 99}
    item = {"id": "msg_1", "type": "message", "role": "assistant"}
    item["content"] = [{"type": "output_text", "text": SECRET}]
    upstream.script(replying_items(thought, item))
    said = [user("When?")]
    await serve(key, said)
    assert [each["id"] for each in said[1:]] == ["rs_1", "msg_1"]
    more = await send(key, [*said, user("And back?")])
    assert more.headers["x-windowpane-lineage"] == "continued"
    pieces = [each async for each in BodyPiece.objects.values_list("text", flat=True)]
    assert not [each for each in pieces if SECRET in each or "gAgA" in each]


async def test_items_that_come_back_whole_are_rebuilt(key, upstream):
    """The part of a thought that is kept for its id is less than a client sends."""
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted": "gA" * 99}
    item = {"id": "msg_1", "type": "message", "role": "assistant"}
    item["content"] = [{"type": "output_text", "text": SECRET}]
    upstream.script(replying_items(thought, item))
    said = [user("When?")]
    await send(key, said)
    more = await send(key, [*said, thought, item, user("And back?")])
    assert more.headers["x-windowpane-lineage"] == "continued"
    assert len(await state()) == 1


async def test_items_that_the_provider_runs_are_known(key, upstream):
    found = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    item = {"id": "msg_1", "type": "message", "role": "assistant"}
    item["content"] = [{"type": "output_text", "text": "Yes."}]
    upstream.script(replying_items(found, item))
    said = [user("When?")]
    await serve(key, said)
    more = await send(key, [*said, user("And back?")])
    assert more.headers["x-windowpane-lineage"] == "continued"


async def test_a_reference_without_a_type_is_one(key, upstream):
    _, said = await talk(key, upstream, 1)
    for each in said:
        if each.get("type") == "item_reference":
            del each["type"]
    more = await send(key, [*said, user("And?")])
    assert more.headers["x-windowpane-lineage"] == "continued"


def check_not_found(call):
    """The form in which OpenAI says it."""
    assert call.status == 404
    error = json.loads(call.answer)["error"]
    assert (error["type"], error["param"]) == ("invalid_request_error", "input")
    assert error["message"].startswith("Item with id '")


@pytest.mark.parametrize("ids", ["refused", "passed"])
@pytest.mark.parametrize("path", [PATH, f"{PATH}/compact"])
async def test_items_of_another_user_are_not_found(
    key, bob, upstream, settings, ids, path
):
    settings.ENDPOINT_PROVIDER_IDS = ids
    _, said = await talk(key, upstream, 1)
    _, his = await sync_to_async(keys.create_api_key)(bob, "his")
    asked = len(upstream.requests)
    raw = json.dumps({"model": "ok", "input": [*said, user("And?")]}).encode()
    check_not_found(await Call(path, raw, key=his).run())
    assert len(upstream.requests) == asked
    assert not await Conversation.objects.filter(owner=bob).aexists()


@pytest.mark.parametrize("item_id", ["msg_unknown", "", "a\0b", "\ud800", "x" * 400])
async def test_unknown_items_are_not_found(key, upstream, item_id):
    unknown = {"type": "item_reference", "id": item_id}
    check_not_found(await send(key, [user("Another?"), unknown, user("And?")]))
    assert upstream.requests == []


@pytest.mark.parametrize("item_id", [["x"], {"x": 1}, 1, None])
async def test_ids_that_are_no_strings_are_refused(key, upstream, item_id):
    _, said = await talk(key, upstream, 1)
    asked = len(upstream.requests)
    refused = await send(key, [*said, {"type": "item_reference", "id": item_id}])
    assert (refused.status, len(upstream.requests)) == (400, asked)


async def test_unknown_items_are_passed_as_ids_if_allowed(key, upstream, settings):
    settings.ENDPOINT_PROVIDER_IDS = "passed"
    unknown = {"type": "item_reference", "id": "msg_unknown"}
    given = [user("Another?"), unknown, user("And?")]
    first = await send(key, given)
    assert (await state())[0][:3] == ["u: Another?", "a: [item]", "u: And?"]
    # The same names are the same message.
    output = read_output(first)["output"]
    more = await send(key, [*given, *name_items(output), user("So?")])
    assert more.headers["x-windowpane-lineage"] == "continued"


async def test_references_are_refused_without_a_database(
    key, upstream, settings, monkeypatch
):
    """The owner of the items is unknown without a database."""
    settings.ENDPOINT_WITHOUT_STORE = "open"
    _, said = await talk(key, upstream, 1)
    asked = len(upstream.requests)

    def fail(*_):
        raise OperationalError("away")

    monkeypatch.setattr("chatsite.contrib.endpoint.store.served_items.find_items", fail)
    assert (await send(key, [*said, user("And?")])).status == 503
    assert len(upstream.requests) == asked


async def test_statements_for_items_are_bounded(key, upstream, alice):
    """The statements grow with the hundreds of ids, not with the items."""
    answers = [{"type": "web_search_call", "id": f"ws_{n}"} for n in range(1_001)]
    upstream.script(replying_items(*answers))
    said = [user("Search.")]
    await serve(key, said)
    raw = json.dumps({"model": "ok", "input": [*said, user("And?")]}).encode()
    asked = read_client_request(OPENAI_RESPONSES, {}, raw)

    @sync_to_async
    def find():
        with CaptureQueriesContext(connection) as queries:
            found = find_items(alice.pk, asked)
        assert found == {each["id"]: each for each in answers}
        return len(queries)

    assert await find() == 6


@pytest.mark.database("sqlite")
def test_ids_are_found_by_their_indexes(alice):
    """Few of a million pieces are items."""
    body = {"model": "ok", "input": [{"type": "item_reference", "id": "msg_1"}]}
    asked = read_client_request(OPENAI_RESPONSES, {}, json.dumps(body).encode())
    with CaptureQueriesContext(connection) as queries:
        with pytest.raises(ApiError):
            find_items(alice.pk, asked)
        with pytest.raises(NotOwnedError):
            OwnerHistory(alice.pk).find_reply("resp_1")
    for query in queries.captured_queries:
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {query['sql']}")
            plan = str(cursor.fetchall())
        assert "body_piece_item" in plan or "client_request_response" in plan, plan


async def test_more_items_than_a_body_may_have_are_refused(key, upstream):
    """An id of a few bytes represents a long item each time that it occurs."""
    long = {"type": "web_search_call", "id": "ws_1", "action": "x" * 60_000}
    upstream.script(replying_items(long))
    said = [user("Search.")]
    await serve(key, said)
    refused = await send(key, [said[0], *said[1:] * 600, user("And?")])
    assert (refused.status, len(upstream.requests)) == (413, 1)
    names = [{"type": "item_reference", "id": f"ws_{n}"} for n in range(10_001)]
    refused = await send(key, [*said, *names, user("And?")])
    assert (refused.status, len(upstream.requests)) == (400, 1)


@pytest.mark.parametrize("text", ["", SECRET])
@pytest.mark.parametrize("size", [100, 100_000])
async def test_items_without_words_go_on(key, upstream, text, size):
    """A reply can be an image, and no more."""
    image = {"type": "image_generation_call", "id": "ig_1", "result": "A" * size}
    message = {"id": "msg_1", "type": "message", "role": "assistant"}
    message["content"] = [{"type": "output_text", "text": text}]
    upstream.script(replying_items(image, *([message] if text else [])))
    said = [user("Paint it, please, as you would paint a train.")]
    await serve(key, said)
    for question in ("And in red?", "And in green?"):
        said.append(user(question))
        call, _ = await serve(key, said)
        assert call.status == 200, call.answer
    assert await Conversation.objects.acount() == 1
    texts = [each async for each in BodyPiece.objects.values_list("text", flat=True)]
    assert not [each for each in texts if len(each) > 70_000]


async def test_references_count_as_their_items_when_bounded(alice, upstream, settings):
    """A bounded request is as long as the replies that it names."""
    settings.CONTEXT_WINDOW = 2_500
    _, bound = await sync_to_async(keys.create_api_key)(alice, "agent", mode="bound")
    said = []
    for turn in range(8):
        upstream.script(replying(text=f"{SECRET} Number {turn}. " * 20))
        said.append(user(f"What of {turn}?"))
        call, _ = await serve(bound, said)
    assert call.headers["x-windowpane-context"].startswith("bounded")
    replies = ModelCall.objects.filter(purpose="reply").order_by("pk")
    first, *others = [each.tokens_estimated async for each in replies]
    assert min(others) > first + 300, others
    assert max(others) < 2_500
    assert await Conversation.objects.acount() == 1


async def test_the_demo_model_reads_items(key, settings):
    settings.OPENAI_API_KEY = settings.OPENAI_BASE_URL = ""
    said = [user("My name is Ada.")]
    await serve(key, said)
    raw = json.dumps({"model": "ok", "input": said}).encode()
    short = json.loads((await Call(f"{PATH}/compact", raw, key=key).run()).answer)
    written = short["output"][0]["content"][0]["text"]
    assert "Ada" in written
    assert "reference" not in written


def replying_items(*items):
    value = {"id": "resp_1", "status": "completed", "output": [*items]}
    return lambda x: x.send_json(value)


async def test_items_with_one_id_are_in_doubt(key, upstream):
    """A server that gives all of its items one id has names for none of them."""

    def answering(text):
        part = {"type": "output_text", "text": text}
        item = {"id": "msg_0", "type": "message", "role": "assistant"}
        value = {"id": "resp", "status": "completed"}
        value["output"] = [{**item, "content": [part]}]
        return lambda x: x.send_json(value)

    upstream.script(answering(f"{SECRET} One."), answering(f"{SECRET} Two."))
    said = [user("One?")]
    await serve(key, said)
    await send(key, [user("Two?")])
    more = await send(key, [*said, user("And?")])
    assert more.headers["x-windowpane-lineage"] == "new"


@pytest.mark.parametrize("is_message", [False, True])
async def test_deleted_items_are_not_found(key, upstream, is_message):
    _, said = await talk(key, upstream, 1)
    conversation = await Conversation.objects.aget()
    await sync_to_async(delete)(conversation, is_message)
    asked = len(upstream.requests)
    check_not_found(await send(key, [*said, user("And?")]))
    assert len(upstream.requests) == asked
    assert await Conversation.objects.acount() == 1


def delete(conversation, is_message):
    if is_message:
        last = conversation.messages.order_by("-seq").first()
        commands.delete_message(conversation, last.seq, edited=EditChoice.ASK)
    else:
        library.delete_conversation(conversation)


async def test_a_branch_knows_the_items_of_its_parent(key, upstream):
    _, said = await talk(key, upstream, 2)
    edited = await send(key, [*said[:4], user("In other words?")])
    assert edited.headers["x-windowpane-lineage"] == "branch"
    assert await ClientConversation.objects.acount() == 2
    output = read_output(edited)["output"]
    given = [*said[:4], user("In other words?"), *name_items(output), user("So?")]
    more = await send(key, given)
    assert more.headers["x-windowpane-lineage"] == "continued"


async def test_items_that_no_provider_keeps_are_not_kept(key, upstream):
    """The client has to send them again."""
    await send(key, [user("One?")], store=False)
    assert not await BodyPiece.objects.exclude(item_id="").aexists()
