"""Conversations that the provider holds: Anthropic's threads, OpenAI's responses."""

import json
import random
from hashlib import sha256

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError
from django.db.models import QuerySet

from chatsite.contrib.endpoint import keys
from chatsite.contrib.endpoint.store.request_store import RequestWriter
from chatsite.pages.presenters import thread_json
from memory.library import erase_conversation
from memory.models import Conversation, Message, ModelCall
from memory.view import rebuilding
from tests.chatsite.scenes import violations
from tests.fakes import wires
from tests.fakes.held_threads import BETA, HeldState, count

from .asgi_client import Call, ask

pytestmark = pytest.mark.django_db(transaction=True)
PATH = "/v1/messages"
TOOLS = [{"name": "add", "input_schema": {"type": "object"}}]
SETUP = {"system": "Be brief.", "tools": TOOLS}


@pytest.fixture
def key(alice):
    return keys.create_api_key(alice, "Script")[1]


@pytest.fixture
def held(upstream, settings):
    settings.ANTHROPIC_BASE_URL = upstream.url.removesuffix("/v1")
    settings.ANTHROPIC_API_KEY = "sk-ant-SECRET"
    upstream.held = HeldState()
    return upstream.held


class Thread:
    """A thread as `client.beta.messages.thread()` of Anthropic's SDK sends it."""

    def __init__(self, key, **setup):
        self.key, self.setup = key, setup or SETUP
        self.said, self.previous = [], ""
        self.headers, self.refusals, self.calls = {}, [], []

    async def send(self, *content, stream=False):
        """A user's turn, sent again with the whole history where the API says so."""
        new = [{"role": "user", "content": each} for each in content]
        if self.previous:
            thread = {"type": "continue", "previous_message_id": self.previous}
            call = await self.post(new, thread, stream=stream)
            if call.status == 200:
                return self.take(call, new)
            error = json.loads(call.answer)["error"]
            assert error["details"]["error_code"].startswith("thread_"), error
            self.refusals.append(error["details"]["error_code"])
        whole = [*self.said, *new]
        call = await self.post(whole, {"type": "create"}, stream=stream, **self.setup)
        assert call.status == 200, call.answer
        return self.take(call, new)

    async def post(self, messages, thread, *, stream=False, **setup):
        body = {"model": "claude", "max_tokens": 9, "messages": messages, **setup}
        body |= {"thread": thread, "stream": stream}
        raw = json.dumps(body).encode()
        self.calls.append(Call(PATH, raw, x_api_key=self.key, anthropic_beta=BETA))
        return await self.calls[-1].run()

    def take(self, call, new):
        self.headers = call.headers
        message = read_message(call)
        said = {"role": "assistant", "content": message["content"]}
        self.said += [*new, said]
        self.previous = message["id"]
        return message

    @property
    def lineage(self):
        return self.headers["x-windowpane-lineage"]

    def fork(self):
        other = Thread(self.key, **self.setup)
        other.said, other.previous = [*self.said], self.previous
        return other


def read_message(call):
    """The message of an answer, whole or in events."""
    if call.answer.startswith(b"{"):
        return json.loads(call.answer)
    message, texts = {}, []
    for line in call.answer.decode().splitlines():
        if line.startswith("data: "):
            event = json.loads(line.removeprefix("data: "))
            message = event.get("message", message)
            texts.append(event.get("delta", {}).get("text", ""))
    return {**message, "content": [{"type": "text", "text": "".join(texts)}]}


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


@pytest.mark.parametrize("stream", [False, True])
async def test_thread_continues_one_conversation(key, upstream, held, stream):
    thread = Thread(key)
    for text in ("One?", "Two?", "Three?"):
        await thread.send(text, stream=stream)
    assert thread.lineage == "continued"
    bodies = [each.body for each in upstream.requests]
    assert [len(each["messages"]) for each in bodies] == [1, 1, 1]
    assert [each.raw for each in upstream.requests] == [c.body for c in thread.calls]
    assert "system" not in bodies[-1]
    assert await state() == [
        [
            *("u: One?", "a: Reply 1 to: One?", "u: Two?", "a: Reply 3 to: Two?"),
            *("u: Three?", "a: Reply 5 to: Three?"),
        ]
    ]
    # The provider's own system prompt is still in force.
    assert await Conversation.objects.filter(system_prompt="Be brief.").aexists()
    assert len({call.refs["system"] async for call in ModelCall.objects.all()}) == 1
    # The same history, sent whole and without a thread, continues it.
    whole = {"model": "claude", **SETUP, "messages": [*thread.said, user("Four?")]}
    call = await Call(PATH, json.dumps(whole).encode(), x_api_key=key).run()
    assert call.headers["x-windowpane-lineage"] == "continued"
    assert len(await state()) == 1


def user(text):
    return {"role": "user", "content": text}


def result_of(block, text):
    return {"type": "tool_result", "tool_use_id": block["id"], "content": text}


async def test_results_in_a_thread_belong_to_its_calls(key, held):
    calls = [wires.Call("add", "{}"), wires.Call("add", '{"a": 1}')]
    held.replies = [wires.Reply("", calls), wires.Reply("Three.")]
    thread = Thread(key)
    blocks = (await thread.send("One and two?"))["content"]
    await thread.send([result_of(blocks[1], "2"), result_of(blocks[0], "1")])
    held.forget_all()
    await thread.send("Thanks")
    assert thread.refusals == ["thread_not_found"]
    assert thread.lineage == "continued"
    [rows] = await state()
    assert rows[:5] == ["u: One and two?", "a: ", "t: 2", "t: 1", "a: Three."]


async def test_expired_thread_is_replayed_into_the_same_conversation(key, held):
    thread = Thread(key)
    await thread.send("One?")
    held.now += held.seconds + 1
    await thread.send("Two?")
    assert thread.refusals == ["thread_not_found"]
    await thread.send("Three?")
    assert (len(thread.refusals), thread.lineage) == (1, "continued")
    [rows] = await state()
    assert [row for row in rows if row[0] == "u"] == ["u: One?", "u: Two?", "u: Three?"]


async def test_two_continuations_of_one_reply_are_branches(key, held):
    thread = Thread(key)
    await thread.send("One?")
    other = thread.fork()
    await thread.send("Two?")
    await other.send("Three?")
    assert other.refusals == ["thread_already_continued"]
    await thread.send("Four?")
    await other.send("Five?")
    first, second = await state()
    assert [row for row in first if row[0] == "u"] == ["u: One?", "u: Two?", "u: Four?"]
    said = [row for row in second if row[0] == "u"]
    assert said == ["u: One?", "u: Three?", "u: Five?"]


async def test_thread_of_another_user_is_not_found(key, bob, upstream, held, settings):
    thread = Thread(key)
    await thread.send("Hello")
    _, his = await sync_to_async(keys.create_api_key)(bob, "his")
    stolen, guessed = Thread(his), Thread(his)
    stolen.previous, guessed.previous = thread.previous, "msg_guessed"
    asked = len(upstream.requests)
    answers = []
    for each in (stolen, guessed):
        named = {"type": "continue", "previous_message_id": each.previous}
        answers.append(await each.post([user("And?")], named))
    assert answers[0].answer == answers[1].answer
    assert (answers[0].status, len(upstream.requests)) == (404, asked)
    body = {"model": "claude", "messages": [user("And?")], "thread": named}
    body["thread"]["previous_message_id"] = thread.previous
    raw = json.dumps(body).encode()
    counted = await Call(f"{PATH}/count_tokens", raw, x_api_key=his).run()
    assert (counted.status, len(upstream.requests)) == (404, asked)
    settings.ENDPOINT_PROVIDER_IDS = "passed"
    assert (await stolen.post([user("And?")], named)).status == 404
    # The SDK sends the whole history then, as the same user.
    settings.ENDPOINT_PROVIDER_IDS = "refused"
    await guessed.send("And?")
    assert guessed.refusals == ["thread_not_found"]
    assert guessed.lineage == "single"
    assert len(await state()) == 2


async def test_deleted_conversation_is_not_continued(key, upstream, held):
    thread = Thread(key)
    await thread.send("Hello")
    await sync_to_async(erase_conversation)(await Conversation.objects.aget())
    asked = len(upstream.requests)
    await thread.send("And?")
    assert thread.refusals == ["thread_not_found"]
    assert len(upstream.requests) == asked + 1
    assert len(await state()) == 1


@pytest.mark.parametrize(
    "thread",
    [
        {"type": "continue", "previous_message_id": 7},
        {"type": "continue", "previous_message_id": "../../v1/files"},
        {"type": "continue", "Previous_Message_Id": "msg_1"},
    ],
)
async def test_malformed_thread_is_refused(key, upstream, held, thread):
    call = await Thread(key).post([user("Hello")], thread)
    assert (call.status, upstream.requests) == (400, [])
    assert await state() == []


async def test_provider_judges_a_thread_without_an_id(key, upstream, held):
    call = await Thread(key).post([user("Hello")], "create")
    assert upstream.requests[-1].body["thread"] == "create"
    assert (call.status, b"should be an object" in call.answer) == (400, True)


async def test_paused_turn_is_resumed_without_a_message(key, held):
    held.replies = [wires.Reply("Searching"), wires.Reply("Found.")]
    thread = Thread(key)
    await thread.send("Where?")
    await thread.send()
    assert thread.lineage == "continued"
    await thread.send("Thanks")
    [rows] = await state()
    assert rows[:4] == ["u: Where?", "a: Searching", "a: Found.", "u: Thanks"]
    named = {"type": "continue", "previous_message_id": "msg_unknown"}
    assert (await thread.post([], named)).status == 404


async def test_bound_key_refuses_held_state(key, upstream, held, settings):
    bound = {"x_windowpane_mode": "bound"}
    for thread in ({"type": "create"}, {"type": "continue"}):
        body = {"model": "claude", "messages": [user("Hello")], "thread": thread}
        raw = json.dumps(body).encode()
        status, headers, value = await ask(PATH, raw, key=key, **bound)
        assert status == 400
        assert headers["x-windowpane-held"] == "refused"
        code = value["error"]["details"]["error_code"]
        assert code == "thread_unsupported_request"
    body = {"model": "ok", "input": "Hi", "previous_response_id": "resp_1"}
    raw = json.dumps(body).encode()
    status, headers, value = await ask("/v1/responses", raw, key=key, **bound)
    assert (status, headers["x-windowpane-held"]) == (400, "refused")
    assert value["error"]["param"] == "previous_response_id"
    assert (upstream.requests, await state()) == ([], [])


async def test_provider_that_starts_again_between_two_turns(key, held, settings):
    thread = Thread(key)
    await thread.send("One?")
    url = settings.ANTHROPIC_BASE_URL
    settings.ANTHROPIC_BASE_URL = "http://127.0.0.1:9"
    named = {"type": "continue", "previous_message_id": thread.previous}
    assert (await thread.post([user("Two?")], named)).status == 502
    settings.ANTHROPIC_BASE_URL = url
    held.forget_all()
    await thread.send("Two?")
    assert (thread.refusals, thread.lineage) == (["thread_not_found"], "continued")
    [rows] = await state()
    assert [row for row in rows if row[0] == "u"] == ["u: One?", "u: Two?"]


async def test_thread_waits_for_the_database(
    key, held, upstream, settings, monkeypatch
):
    settings.ENDPOINT_WITHOUT_STORE = "open"
    thread = Thread(key)
    await thread.send("One?")

    def fail(*_):
        raise OperationalError("away")

    monkeypatch.setattr(RequestWriter, "store_first", fail)
    named = {"type": "continue", "previous_message_id": thread.previous}
    assert (await thread.post([user("Two?")], named)).status == 503
    assert len(upstream.requests) == 1


@pytest.mark.parametrize("seed", range(4))
async def test_random_expiry_attaches_nothing_wrong(key, bob, held, seed):
    """Four threads of two users with the same words, which end at 50 random moments:
    after their time, with the provider's process, or as another request was faster."""
    rng = random.Random(f"held {seed}")
    _, his = await sync_to_async(keys.create_api_key)(bob, "his")
    threads = [Thread(key), Thread(key), Thread(his), Thread(his)]
    ids, ends, turn = {}, 0, 0
    while ends < 50:
        n, turn = rng.randrange(len(threads)), turn + 1
        thread = threads[n]
        happened = rng.choice(["", "expired", "lost", "raced"])
        if happened == "expired":
            held.now += held.seconds + 1
        elif happened == "lost":
            held.forget_all()
        elif happened == "raced":
            held.continued.add(thread.previous)
        refused = len(thread.refusals)
        # Another thread has the same words, too.
        await thread.send(f"Turn {turn // 4}?" if thread.said else "Hello")
        ends += len(thread.refusals) - refused
        found = thread.headers["x-windowpane-conversation"]
        assert ids.setdefault(n, found) == found, (turn, happened)
        # The provider has read what the client means.
        assert held.read[-1][1] == thread.said[:-1]
    assert len({*ids.values()}) == len(ids)
    assert len(await state()) == len(ids)
    async for call in ModelCall.objects.filter(refs__has_key="held"):
        assert (await sync_to_async(find_held)(call)).is_proved


def find_held(call):
    return rebuilding.rebuild_context(call).read_held()


@sync_to_async
def read_context():
    conversation = Conversation.objects.latest("pk")
    last = conversation.messages.filter(role="assistant").latest("seq").seq
    return thread_json.describe_context(conversation, last)


async def test_held_part_is_rebuilt_with_its_hash(key, held):
    thread = Thread(key)
    held.replies = [wires.Reply("", [wires.Call("add", "{}")])]
    blocks = (await thread.send("One and one?"))["content"]
    await thread.send([result_of(blocks[0], "2")])
    await thread.send("Thanks")
    found = await read_context()
    previous, read, setup = held.read[-1]
    assert found["held"]["messages"] == read[:-1]
    assert found["held"]["system"] == setup["system"]
    assert found["held"]["tools"] == setup["tools"]
    assert found["held"]["is_proved"]
    assert found["messages"] == read[-1:]
    assert found["body_sha256"] == sha256(thread.calls[-1].body).hexdigest()
    named = f"sha256={found['held']['sha256']}; "
    assert thread.headers["x-windowpane-held"].startswith(named)
    tokens = found["tokens"]
    assert tokens["reported"] == count(read) + count(setup)
    assert sum(part["tokens"] for part in found["parts"]) == tokens["estimated"]
    assert tokens["sent"] + tokens["held"] + tokens["only_there"] == tokens["estimated"]
    assert tokens["sent"] == -(-len(thread.calls[-1].body) // 4)
    assert [part["name"] for part in found["parts"]] == ["held", "newest"]


async def test_changed_row_leaves_the_held_part_unproved(key, held):
    thread = Thread(key)
    await thread.send("One?")
    await thread.send("Two?")
    rows = QuerySet(Message).filter(seq=2)
    await sync_to_async(rows.update)(text="Something else")
    assert not (await read_context())["held"]["is_proved"]


def replying(*items, reasoning=0):
    def answer(x):
        whole = wires.write_whole("responses", "ok", wires.Reply("Two."))
        whole["output"] = [*items, *whole["output"]]
        whole["usage"]["output_tokens_details"]["reasoning_tokens"] = reasoning
        x.send_json(whole)

    return answer


async def test_items_that_only_the_provider_reads_are_counted(key, upstream):
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    packed = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA" * 10}
    upstream.script(replying(thought, packed, reasoning=70), replying())
    tools = [{"type": "function", "name": "add", "description": "Adds. " * 200}]
    body = {"model": "ok", "input": "One and one?", "tools": tools}
    first = await Call("/v1/responses", json.dumps(body).encode(), key=key).run()
    named = json.loads(first.answer)["id"]
    body |= {"input": "And two?", "previous_response_id": named}
    second = await Call("/v1/responses", json.dumps(body).encode(), key=key).run()
    assert second.headers["x-windowpane-lineage"] == "continued"
    found = await read_context()
    assert found["tokens"]["only_there"] == 70 + 10
    # The tools are sent with each request, and not held.
    assert 5 < found["tokens"]["held"] < 40
    assert (
        sum(part["tokens"] for part in found["parts"]) == found["tokens"]["estimated"]
    )
    kinds = [each.get("type") for each in found["held"]["messages"]]
    assert kinds == [None, "reasoning", "compaction", "message"]
    assert (found["held"]["tools"], found["held"]["is_proved"]) == ([], True)


async def test_page_shows_the_held_part(key, alice, client, held):
    thread = Thread(key)
    await thread.send("One?")
    await thread.send("Two?")
    await sync_to_async(client.force_login)(alice)
    conversation = await Conversation.objects.aget()
    page = await sync_to_async(client.get)(
        f"/c/{conversation.uuid}/context/?reply=4", headers={"hx-request": "true"}
    )
    text = page.content.decode()
    assert "Held by the provider, rebuilt from what was sent" in text
    assert "Be brief." in text
    assert "Reply 1 to: One?" in text
    assert (await read_context())["held"]["sha256"][:8] in text
