"""Conversations as agents read them: lists, searches, messages in parts."""

from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from chatsite.contrib.endpoint.mcp_server import transcripts
from chatsite.review.models import AccessEvent
from memory import library, transcript
from memory.models import Message
from tests.chatsite.scenes import talk_in_turns

from .reading import connected, use

pytestmark = pytest.mark.django_db(transaction=True)
in_database = sync_to_async


def talk(owner, *texts, **values):
    made = transcript.create_conversation(owner, **values)
    talk_in_turns(made, *texts)
    return made


async def read_all(client, **given):
    """The texts of all messages, put together from their pieces."""
    texts = {}
    while given:
        answer = await use(client, "read_messages", **given)
        for message in answer["messages"]:
            seq = message["message"]
            texts[seq] = texts.get(seq, "") + message["text"]
        given = answer.get("next")
    return texts


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy", "auto"])
async def test_an_agent_lists_searches_and_reads(reader, alice, mode):
    made = await in_database(talk)(alice, "Where is Kyoto?", title="Japan")
    async with connected(reader, mode=mode) as client:
        named = {tool.name for tool in (await client.list_tools()).tools}
        assert {"list_conversations", "search_transcripts", "read_messages"} <= named
        listed = await use(client, "list_conversations")
        [row] = listed["conversations"]
        assert (row["conversation"], row["title"]) == (str(made.uuid), "Japan")
        assert row["address"] == f"http://testserver/c/{made.uuid}/"
        found = (await use(client, "search_transcripts", query="Kyoto"))["found"]
        assert found[0]["excerpt"] == "Reply to: Where is Kyoto?"
        assert found[0]["address"].endswith(f"?at={found[0]['message']}#message-2")
        answer = await use(client, "read_messages", conversation=str(made.uuid))
        said = [(each["role"], each["text"]) for each in answer["messages"]]
        assert said == [
            ("user", "Where is Kyoto?"),
            ("assistant", "Reply to: Where is Kyoto?"),
        ]
        assert "next" not in answer


async def test_search_finds_only_lasting_conversations_of_the_owner(reader, alice, bob):
    make = in_database(talk)
    foreign = await make(bob, "A secret of Bob", title="Foreign")
    hidden = await make(alice, "A secret for now", temporary=True)
    gone = await make(alice, "A secret of once")
    await in_database(library.delete_conversation)(gone)
    async with connected(reader) as client:
        assert await use(client, "list_conversations") == {"conversations": []}
        assert await use(client, "search_transcripts", query="secret") == {"found": []}
        for each in (foreign, hidden, gone):
            for tool, more in (
                ("read_messages", {}),
                ("search_transcripts", {"query": "secret"}),
            ):
                answer = await use(client, tool, conversation=str(each.uuid), **more)
                assert answer == "There is no such conversation."
    assert not await AccessEvent.objects.filter(conversation__isnull=False).aexists()


async def test_a_list_comes_in_pages(reader, alice):
    for number in range(5):
        await in_database(talk)(alice, title=f"T{number}")
    same = timezone.now()
    await alice.conversations.aupdate(updated_at=same)
    titles, given = [], {"limit": 2}
    async with connected(reader) as client:
        while given:
            answer = await use(client, "list_conversations", **given)
            titles += [row["title"] for row in answer["conversations"]]
            given = answer.get("next")
        assert sorted(titles) == ["T0", "T1", "T2", "T3", "T4"]
        answer = await use(client, "list_conversations", archived=True)
        assert answer == {"conversations": []}
        for wrong in ("x", "2026-01-01 x", f"0001-01-01T00:00+14:00 {uuid4()}"):
            answer = await use(client, "list_conversations", after=wrong)
            assert answer == "`after` is no place of a list: leave it out."


async def test_pieces_of_a_transcript_lose_no_character(reader, alice, monkeypatch):
    monkeypatch.setattr(transcripts, "MAX_CHARS", 50)
    monkeypatch.setattr(transcripts, "ROW_CHARS", 7)
    texts = ["äöü🙂" * 40, "short", "京都" * 13, "x" * 50, "y" * 51]
    made = await in_database(talk)(alice, *texts)
    rows = made.messages.order_by("seq").values_list("seq", "text")
    stored = dict(await in_database(list)(rows))
    async with connected(reader) as client:
        for limit in (1, 3, 100):
            given = {"conversation": str(made.uuid), "limit": limit}
            assert await read_all(client, **given) == stored
        late = await use(
            client,
            "read_messages",
            conversation=str(made.uuid),
            from_message=1,
            from_character=999_999,
        )
        assert late["messages"][0]["text"] == ""


async def test_answer_size_is_limited(reader, alice, settings):
    settings.MESSAGE_MAX_CHARS = 100_000
    made = await in_database(talk)(alice, "a" + "\x01" * 99_999)
    async with connected(reader) as client:
        result = await client.call_tool(
            "read_messages", {"conversation": str(made.uuid)}
        )
    assert len(result.content[0].text) < 300_000


async def test_marks_calls_and_files_are_named(reader, alice):
    made = await in_database(talk)(alice, "One", "Two", "Three")
    await Message.objects.filter(seq=1).aupdate(excluded_at=timezone.now())
    await Message.objects.filter(seq=4).aupdate(pinned_at=timezone.now())
    call = {"name": "weather", "args": {"place": "x" * 2_000}, "id": "call_1"}
    await Message.objects.acreate(
        conversation=made, seq=7, role="assistant", tool_calls=[call], tokens=1
    )
    async with connected(reader) as client:
        answer = await use(client, "read_messages", conversation=str(made.uuid))
    by_number = {each["message"]: each for each in answer["messages"]}
    assert by_number[1]["removed"] == ["hidden from the model"]
    assert by_number[4]["pinned"] is True
    [told] = by_number[7]["calls"]
    assert (told["name"], len(told["arguments"])) == ("weather", 1_000)
    assert told["characters"] == 2_013


async def test_each_read_is_in_the_access_log(reader, alice, session, client):
    made = await in_database(talk)(alice, "Hello", title="Said")
    async with connected(reader) as agent:
        await use(agent, "list_conversations")
        await use(agent, "search_transcripts", query="Hello")
        await use(agent, "read_messages", conversation=str(made.uuid))
    rows = AccessEvent.objects.order_by("pk")
    hint = reader[:7]
    assert [row async for row in rows.values_list("target", "conversation")] == [
        (f"list key {hint} list_conversations", None),
        (f"list key {hint} search_transcripts", None),
        (f"list key {hint} read_messages", made.uuid),
    ]
    values = {"action": "key", "user": alice, "owner": alice, "address": "127.0.0.1"}
    assert await rows.filter(**values).acount() == 3
    page = await in_database(client.get)("/account/")
    shown = page.content.decode()
    assert f"read with a key: API key {hint} read_messages" in shown
    assert "deleted <code>None" not in shown
