"""The provider's own compaction: untouched, stored, billed, and one conversation."""

import json

import pytest

from chatsite.contrib.endpoint import keys
from chatsite.contrib.endpoint.apis.provider_report import find_mismatch
from chatsite.contrib.endpoint.models import (
    ApiKey,
    ClientConversation,
    ClientRequest,
    ProviderSummary,
)
from chatsite.turns.models import Turn
from memory.models import Conversation, ModelCall
from tests.fakes.compacting import COMPACT, EDIT, CompactingProvider

from .asgi_client import Call
from .sdk_clients import connect_anthropic, connect_openai

pytestmark = pytest.mark.django_db(transaction=True)
PUMP = "The order number of the pump is QX-4471, and the pump goes to Ghent."
ANNEX = "The budget of the annex is 8450 euros, and nobody else knows it yet."
SMALL = {"trigger": {"type": "input_tokens", "value": 60}}


@pytest.fixture
def provider(settings):
    with CompactingProvider() as made:
        settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY = made.url, "sk-test"
        settings.ANTHROPIC_BASE_URL = made.url.removesuffix("/v1")
        settings.ANTHROPIC_API_KEY = "sk-ant"
        yield made


@pytest.fixture
def key(alice, provider):
    return keys.create_api_key(alice, "SDK")[1]


def user(text):
    return {"role": "user", "content": text}


async def ask(client, messages, *, stream, betas=(EDIT,), **more):
    """The message, as the SDK gathers it; the reply is added to the messages."""
    values = {"model": "claude", "max_tokens": 99, "betas": [*betas], **more}
    if stream:
        async with client.beta.messages.stream(messages=messages, **values) as got:
            made = await got.get_final_message()
    else:
        made = await client.beta.messages.create(messages=messages, **values)
    content = [each.model_dump(exclude_none=True) for each in made.content]
    messages.append({"role": "assistant", "content": content})
    return made


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("is_whole", [False, True])
async def test_summary_in_a_reply_is_kept_and_billed(key, provider, stream, is_whole):
    client, got = connect_anthropic(key)
    said = [user(PUMP)]
    await ask(client, said, stream=stream)
    said.append(user(ANNEX))
    edits = {"edits": [{"type": "compact_20260112", **SMALL}]}
    made = await ask(client, said, stream=stream, context_management=edits)
    assert got.answer == bytes(provider.requests[-1].answered)
    assert [each.type for each in made.content] == ["compaction", "text"]
    row = await ProviderSummary.objects.aget()
    block = made.content[0].model_dump(exclude_none=True)
    assert json.loads(row.block) == block
    used = made.usage.iterations
    call = await ModelCall.objects.aget(pk=row.call_id)
    assert call.tokens_input == sum(
        each.input_tokens + each.cache_read_input_tokens for each in used
    )
    assert call.tokens_output == sum(each.output_tokens for each in used)
    assert (row.last_seq, row.tokens) == (3, used[0].output_tokens)
    # With the history, or with the summary alone: the same conversation.
    said = said if is_whole else said[-1:]
    for text in ("And where does it go?", "And then?"):
        said.append(user(text))
        await ask(client, said, stream=stream)
        assert provider.requests[-1].body["messages"] == said[:-1]
        said = said[said.index(user("And where does it go?")) - 1 :]
    assert await Conversation.objects.acount() == 1
    assert await Turn.objects.filter(state="done").acount() == 4


@pytest.mark.parametrize("stream", [False, True])
async def test_summary_alone_continues_the_conversation(key, provider, stream):
    client, got = connect_anthropic(key)
    said = [user(PUMP)]
    await ask(client, said, stream=stream)
    before = (await ApiKey.objects.aget()).tokens_used
    compaction = {"type": "summarize"}
    made = await ask(
        client, said, stream=stream, betas=[COMPACT], compaction=compaction
    )
    assert (made.stop_reason, len(made.content)) == ("compaction", 1)
    assert got.answer == bytes(provider.requests[-1].answered)
    used = made.usage.iterations[0]
    spent = (await ApiKey.objects.aget()).tokens_used - before
    assert spent >= used.input_tokens + used.output_tokens
    # It is no message, and no turn.
    assert await Turn.objects.acount() == 1
    row = await ProviderSummary.objects.aget()
    assert (row.last_seq, row.call_id, row.api) == (2, None, "messages")
    said = [said[-1], user("Where does the pump go?")]
    made = await ask(client, said, stream=stream, betas=[COMPACT])
    assert got.headers["x-windowpane-lineage"] == "client-compacted"
    said.append(user("And the annex?"))
    await ask(client, said, stream=stream, betas=[COMPACT])
    assert got.headers["x-windowpane-lineage"] == "continued"
    assert await Conversation.objects.acount() == 1


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("is_whole", [False, True])
async def test_pause_after_compaction_waits_for_the_reply(
    key, provider, stream, is_whole
):
    client, _ = connect_anthropic(key)
    said = [user(PUMP)]
    await ask(client, said, stream=stream)
    said.append(user(ANNEX))
    edit = {"type": "compact_20260112", **SMALL, "pause_after_compaction": True}
    await ask(client, said, stream=stream, context_management={"edits": [edit]})
    turn = await Turn.objects.alatest("pk")
    assert (turn.state, turn.error) == ("stopped", "compacted")
    said = said if is_whole else said[-1:]
    made = await ask(client, said, stream=stream)
    turn = await Turn.objects.select_related("reply").alatest("pk")
    assert (turn.state, turn.reply.text) == ("done", made.content[0].text)
    assert await Conversation.objects.acount() == 1
    assert await Turn.objects.acount() == 2


async def test_refusals_of_the_provider_are_passed_on(key, provider):
    client, got = connect_anthropic(key)
    refused = got.sdk.BadRequestError
    said = [user(PUMP)]
    await ask(client, said, stream=False)
    with pytest.raises(refused, match="not permitted"):
        await ask(client, said, stream=False, compaction={"type": "summarize"})
    provider.closed.add(COMPACT)
    with pytest.raises(refused, match="anthropic-beta"):
        await ask(client, said, stream=False, betas=[COMPACT])
    provider.closed.clear()
    compaction = {"type": "summarize"}
    await ask(client, said, stream=False, betas=[COMPACT], compaction=compaction)
    said[-1]["content"][0]["signature"] = "forged"
    said = [said[-1], user("Where does the pump go?")]
    with pytest.raises(refused, match="signature"):
        await ask(client, said, stream=False, betas=[COMPACT])
    assert got.answer == bytes(provider.requests[-1].answered)
    assert await ProviderSummary.objects.acount() == 1
    # The forged one continues nothing by itself.
    first = await Conversation.objects.order_by("pk").afirst()
    assert await first.messages.acount() <= 3


async def test_iterations_that_do_not_sum_are_noted(key, provider):
    client, _ = connect_anthropic(key)
    said = [user(PUMP)]
    await ask(client, said, stream=False)
    said.append(user(ANNEX))
    edits = {"edits": [{"type": "compact_20260112", **SMALL}]}
    provider.extra_tokens = 5
    made = await ask(client, said, stream=False, context_management=edits)
    last = await ClientRequest.objects.select_related("call").alatest("pk")
    summed, stated = find_mismatch(last.report)
    assert stated.read == summed.read + 5
    used = made.usage.iterations
    counts = (each.input_tokens + each.cache_read_input_tokens for each in used)
    assert last.call.tokens_input == sum(counts)
    first = await ClientRequest.objects.order_by("pk").afirst()
    assert find_mismatch(first.report) is None


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("shape", ["inline", "trigger", "named", "path", "waiting"])
async def test_opaque_summary_continues_the_conversation(key, provider, stream, shape):
    client, got = connect_openai(key)

    async def respond(items, **more):
        values = {"model": "gpt", "input": items, **more}
        if not stream:
            return (await client.responses.create(**values)).output
        events = await client.responses.create(**values, stream=True)
        return [each async for each in events][-1].response.output

    def back(items):
        return [each.model_dump(exclude_none=True, warnings=False) for each in items]

    said = [user(PUMP)]
    said += back(await respond(said))
    trigger = {"type": "compaction_trigger"}
    if shape == "inline":
        said.append(user(ANNEX))
        limit = [{"type": "compaction", "compact_threshold": 20}]
        said += back(await respond(said, context_management=limit))
    elif shape == "trigger":
        said = back(await respond([*said, trigger]))
    elif shape == "named":
        request = await ClientRequest.objects.alatest("pk")
        named = {"previous_response_id": request.response_id}
        said = back(await respond([trigger], **named))
    elif shape == "waiting":
        said.append(user(ANNEX))
        said += back(await respond([*said, trigger]))
        assert (await Turn.objects.alatest("pk")).error == "compacted"
    else:
        made = await client.responses.compact(model="gpt", input=said)
        said = back(made.output)
    assert got.answer == bytes(provider.requests[-1].answered)
    item = next(each for each in said if each.get("type") == "compaction")
    row = await ProviderSummary.objects.aget()
    assert json.loads(row.block)["encrypted_content"] == item["encrypted_content"]
    asked = said if shape == "waiting" else [*said, user("Where does it go?")]
    said = [*asked, *back(await respond(asked))]
    assert provider.requests[-1].body["input"] == asked
    await respond([*said, user("And then?")])
    assert got.headers["x-windowpane-lineage"] == "continued"
    assert await Conversation.objects.acount() == 1
    assert not await ClientConversation.objects.filter(is_single=True).aexists()


OPENAI = {"cache_write_tokens": 800, "cached_tokens": 100}
LONG = {"ttl_30m_tokens": 500, "ttl_12h_tokens": 300}
MADE = {"ephemeral_5m_input_tokens": 600, "ephemeral_1h_input_tokens": 200}


@pytest.mark.parametrize(
    ("path", "usage", "extra"),
    [
        ("chat/completions", {"prompt_tokens_details": OPENAI}, 200),
        ("responses", {"input_tokens_details": OPENAI}, 200),
        (
            "responses",
            {"input_tokens_details": {**OPENAI, "cache_write_tokens_details": LONG}},
            # OpenAI names no other price for what it keeps for long.
            200,
        ),
        ("messages", {"cache_creation_input_tokens": 800}, 200),
        (
            "messages",
            {"cache_creation_input_tokens": 800, "cache_creation": MADE},
            600 // 4 + 200,
        ),
    ],
)
async def test_writing_to_the_cache_is_priced(
    key, provider, settings, path, usage, extra
):
    settings.PRICE_INPUT = 1.0
    counts = {"prompt_tokens": 1000, "completion_tokens": 5, "output_tokens": 5}
    counts["input_tokens"] = 200 if path == "messages" else 1000
    text = {"type": "output_text", "text": "Yes."}
    item = {"type": "message", "role": "assistant", "content": [text]}
    message = {"role": "assistant", "content": "Yes."}
    answer = {
        **{"id": "x_1", "type": "message", "usage": {**counts, **usage}},
        **{"stop_reason": "end_turn", "status": "completed", "output": [item]},
        "content": [{"type": "text", "text": "Yes."}],
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }
    if path == "responses":
        del answer["type"]
    provider.script(lambda x: x.send_json(answer))
    name = "input" if path == "responses" else "messages"
    raw = json.dumps({"model": "ok", name: [user(PUMP)]}).encode()
    call = await Call(f"/v1/{path}", raw, key=key).run()
    assert call.status == 200
    made = await ModelCall.objects.aget()
    assert (made.tokens_input, made.tokens_extra) == (1000, extra)


async def test_tool_runner_compacts_between_two_rounds(key, provider):
    client, got = connect_anthropic(key)

    @got.sdk.beta_async_tool
    async def look(word: str) -> str:
        """Look a word up."""
        return f"{word} is a port."

    use = {"type": "tool_use", "id": "t1", "name": "look", "input": {"word": "Ghent"}}
    head = {"id": "msg_0", "type": "message", "role": "assistant", "model": "claude"}
    ends = {"stop_reason": "tool_use", "stop_sequence": None}
    usage = {"input_tokens": 9, "output_tokens": 5}
    asked = {**head, **ends, "content": [use], "usage": usage}
    provider.script(lambda x: x.send_json(asked))
    runner = client.beta.messages.tool_runner(
        model="claude",
        max_tokens=99,
        betas=[COMPACT],
        tools=[look],
        messages=[user(PUMP)],
    )
    kinds = []
    async for message in runner:
        kinds.append([block.type for block in message.content])
        if kinds == [["tool_use"]]:
            runner.compact_before_next_turn()
    assert kinds == [["tool_use"], ["compaction"], ["text"]]
    assert await Conversation.objects.acount() == 1
    rows = (await Conversation.objects.aget()).messages.order_by("seq")
    texts = [text async for text in rows.values_list("text", flat=True)]
    assert texts[2] == "Ghent is a port."
    assert texts[3] == message.content[0].text
    assert await ProviderSummary.objects.acount() == 1
