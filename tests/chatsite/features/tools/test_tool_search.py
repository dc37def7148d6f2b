"""Tools on demand: a request has the search, and the tools that it found."""

import pytest
from channels.db import database_sync_to_async as reading

from chatsite.features.tools import registry
from chatsite.features.tools.builtin import tool_search
from chatsite.features.tools.builtin.tool_search import (
    MOST_SEARCHES,
    WORDS_CHARS,
    _split_words,
    search_tools,
)
from chatsite.features.tools.models import ToolCall
from chatsite.pages.presenters import context_pane
from chatsite.turns.models import Turn
from memory import transcript
from memory.integrity import audit
from memory.models import Conversation, ModelCall
from memory.view import rebuilding
from tests.fakes import own_tools
from tests.fakes.calling import calling

from ...sockets import Chat

pytestmark = pytest.mark.django_db(transaction=True)
TEXTS = {
    "calendar_create_event": "Create an event with guests.",
    "calendar_list_events": "List the events of a day.",
    "mail_send": "Send a message; an event can be attached.",
    "weather": "查询天气预报。",
}
WORDS_OF = {
    name: ({*_split_words(name)}, {*_split_words(text)}) for name, text in TEXTS.items()
}


@pytest.fixture
def conversation(alice, settings, upstream):
    settings.CHAT_MODEL = "ok"
    settings.TOOLS = own_tools.PATHS
    settings.TOOLS_ON_DEMAND = len(own_tools.NAMES) - 1
    made = transcript.create_conversation(alice)
    Conversation.objects.filter(pk=made.pk).update(tools=own_tools.NAMES)
    made.refresh_from_db()
    return made


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("create event", ["calendar_create_event"]),
        ("EVENTS?", ["calendar_create_event", "calendar_list_events"]),
        ("mail", ["mail_send"]),
        ("天气", ["weather"]),
        ("", []),
        ("eve", []),
        ("a" * 100_000, []),
    ],
)
def test_search_finds_whole_words_and_names_first(words, found):
    assert search_tools(words, WORDS_OF)[: len(found) or 1] == found


async def answer(conversation, session, text="Hello"):
    async with Chat(conversation, session) as chat:
        assert (await chat.say(text))["state"] == "done"


def offered(upstream):
    return [
        [each["function"]["name"] for each in request.body.get("tools", ())]
        for request in upstream.calls
    ]


async def test_tools_that_were_found_stay_and_requests_are_proved(
    conversation, session, upstream
):
    upstream.script(
        calling(("find_tools", {"words": "look up"})),
        calling(("look_up", {"city": "Oslo"})),
        "ok",
        "ok",
    )
    await answer(conversation, session)
    await answer(conversation, session, "Again")
    first, *later = offered(upstream)
    assert first == ["find_tools"]
    assert all(each[:2] == ["find_tools", "look_up"] for each in later)
    assert len(later[0]) < len(own_tools.NAMES)
    assert later[0] == later[1] == later[2]
    [found, looked] = await reading(lambda: [*ToolCall.objects.order_by("pk")])()
    assert (found.state, looked.state) == ("done", "done")
    calls = await reading(lambda: [*ModelCall.objects.filter(purpose="reply")])()
    for call in calls:
        assert await reading(rebuilding.verify_context)(call)
        built = await reading(rebuilding.rebuild_context)(call)
        assert dict(built.parts)["tools"] > 0
    assert not await reading(lambda: [*audit.check_memory()])()
    pane = await reading(context_pane.model_view)(conversation)
    assert [*pane.tools] == later[-1]


async def test_search_that_finds_nothing_names_some_tools(
    conversation, session, upstream
):
    upstream.script(calling(("find_tools", {"words": "zzz"})), "ok")
    await answer(conversation, session)
    result = upstream.calls[1].messages[-1]["content"]
    assert result.startswith("No tool has one of these words.")
    assert "look_up" in result
    assert offered(upstream) == [["find_tools"]] * 2


@pytest.mark.parametrize("change", ["limit", "never", "few"])
async def test_tools_up_to_the_limit_are_all_offered(
    conversation, settings, session, upstream, change
):
    if change == "few":
        names = own_tools.NAMES[:-1]
        await reading(Conversation.objects.update)(tools=names)
        await reading(conversation.refresh_from_db)()
    settings.TOOLS_ON_DEMAND = {"never": 0}.get(change, len(conversation.tools))
    await answer(conversation, session)
    assert offered(upstream) == [[*conversation.tools]]


async def test_search_that_staff_switched_off_is_not_offered(
    conversation, session, upstream, monkeypatch
):
    monkeypatch.setattr(registry, "is_tool_off", lambda name: name == "find_tools")
    await answer(conversation, session)
    assert offered(upstream) == [[*own_tools.NAMES]]


def add_calls(conversation, *calls):
    """Add calls of one turn, each a name and its arguments."""
    message, _ = transcript.append_user_message(
        conversation, text="Hello", client_id="1"
    )
    turn = Turn.objects.create(
        conversation=conversation, user_message=message, reply_seq=message.seq + 1
    )
    ToolCall.objects.bulk_create(
        ToolCall(
            **{"conversation": conversation, "turn": turn, "request": message},
            **{"call_id": "c", "place": place, "name": name, "arguments": arguments},
        )
        for place, (name, arguments) in enumerate(calls)
    )


def test_offer_reads_the_words_of_the_last_searches_only(
    conversation, django_assert_num_queries, monkeypatch
):
    last = MOST_SEARCHES + 90
    add_calls(
        conversation,
        *[("look_up", {"city": "x" * 100_000})] * 40,
        ("unknown", {"words": "y" * 1000}),
        *[("find_tools", {"words": "look up " + "z" * 100_000})] * 40,
        ("find_tools", ["no", "words"]),
        *[("find_tools", {"words": f"nothing{at}"}) for at in range(last)],
        ("look_up", {}),
    )
    searched = []
    monkeypatch.setattr(
        tool_search, "search_tools", lambda words, texts: searched.append(words) or []
    )
    with django_assert_num_queries(2):
        assert registry.list_offered(conversation) == ("find_tools", "look_up")
    newest = range(last - 1, last - 1 - MOST_SEARCHES, -1)
    assert searched == [f"nothing{at}" for at in newest]


def test_search_that_is_repeated_is_among_the_last(conversation):
    others = [("find_tools", {"words": f"nothing{at}"}) for at in range(90)]
    search = "find_tools", {"words": "look up"}
    add_calls(conversation, search, *others)
    assert registry.list_offered(conversation) == ("find_tools",)
    repeated = ToolCall.objects.earliest("pk")
    repeated.pk, repeated.place = None, 91
    repeated.save()
    assert "look_up" in registry.list_offered(conversation)


def test_offer_has_tools_in_the_order_of_their_first_calls(conversation):
    long = "look up " + "z" * 100_000
    add_calls(
        conversation,
        ("find_tools", {"words": 7}),
        (own_tools.NAMES[-1], {}),
        ("find_tools", {"words": long}),
        (own_tools.NAMES[-1], {"words": "again"}),
    )
    offered = registry.list_offered(conversation)
    assert offered[:3] == ("find_tools", own_tools.NAMES[-1], "look_up")


def test_offer_searches_the_first_characters_only():
    assert search_tools("x" * WORDS_CHARS + " mail", WORDS_OF) == []


def test_search_is_not_among_the_tools_to_choose():
    assert "find_tools" in registry.known()
    assert "find_tools" not in registry.available()
