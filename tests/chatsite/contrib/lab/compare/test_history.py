"""Costs of the latest turns, part by part, and the tools that none of them called."""

import re
from dataclasses import replace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatsite.contrib.lab.compare import turns
from chatsite.features.tools import registry
from chatsite.turns import requests
from memory import context, transcript
from memory.models import Conversation, ModelCall
from tests.memory.scenes import ask, call_tools, plant, record, reply_to, say

from ....scenes import page_of, signed_in, url

pytestmark = pytest.mark.django_db(transaction=True)

TOOLS = ["calculate", "current_time", "search_transcript"]


@pytest.fixture
def chat(alice):
    return transcript.create_conversation(alice, title="Costs", tools=[*TOOLS])


def compose(chat, message, tools, steps=()):
    offered = registry.offer_tools(registry.chosen(tools))
    return requests.compose_request(
        chat, message, "m", varied=None, tools=offered, steps=steps
    )


def say_with_offer(chat, text, *, used="", tools=TOOLS):
    """A turn that offered these tools, and called one of them."""
    message = ask(chat, text)
    if used:
        first = call_tools(message, (used, "42"))
        built = compose(chat, message, tools)
        record(chat, built, chat.messages.get(seq=first), tokens_input=200)
    steps = context.read_steps(message) if used else ()
    built = compose(chat, message, tools, steps)
    seq = transcript.reserve_numbers(chat, 1) if used else message.seq + 1
    reply = transcript.append_reply(chat, seq=seq, text="All right.")
    record(chat, built, reply, tokens_input=400, tokens_cached=100)


def read_history(chat):
    return turns.read_cost_history(Conversation.objects.get(pk=chat.pk))


def test_each_turn_is_what_was_reported(client, chat):
    say(chat, "Hello", tokens_input=100, tokens_cached=60)
    say(chat, "Again", tokens_input=3)
    say(chat, "Not reported")
    found = client.get(url("costs-json", chat)).json()
    assert [turn["reply"] for turn in found["turns"]] == [2, 4, 6]
    for turn in found["turns"]:
        counted = sum(part["tokens"] for part in turn["parts"])
        assert counted + turn["uncounted"] == turn["tokens"]
    assert [turn["tokens"] for turn in found["turns"]][:2] == [100, 3]
    assert [turn["is_reported"] for turn in found["turns"]] == [True, True, False]
    assert sum(part["cached"] for part in found["turns"][0]["parts"]) <= 60
    assert found["unused_tools"] is None


def test_a_turn_of_several_requests_is_one(chat):
    say_with_offer(chat, "Hello")
    say_with_offer(chat, "Calculate", used="calculate")
    history = read_history(chat)
    assert [turn.costs.total for turn in history.turns] == [400, 600]
    assert history.turns[1].count_tokens("steps")
    assert "tools" in history.parts


def test_the_latest_turns_are_shown_and_no_more(chat, monkeypatch):
    monkeypatch.setattr(turns, "MOST_TURNS", 3)
    monkeypatch.setattr(turns, "MOST_REQUESTS", 4)
    for n in range(5):
        say(chat, f"Text {n}", tokens_input=50)
    assert [turn.seq for turn in read_history(chat).turns] == [6, 8, 10]
    for name, most in (("MOST_MESSAGES", 9), ("MOST_TOKENS", 100)):
        with monkeypatch.context() as patch:
            patch.setattr(turns, name, most)
            assert [turn.seq for turn in read_history(chat).turns] == [10]


def test_tools_that_no_turn_called_can_be_taken_off_and_put_back(client, chat):
    for n in range(turns.TELLING_TURNS):
        assert read_history(chat).unused is None
        say_with_offer(chat, f"Text {n}", used="calculate" if n == 3 else "")
    unused = read_history(chat).unused
    assert unused.names == ["current_time", "search_transcript"]
    sizes = registry.count_tool_tokens(unused.names)
    assert unused.tokens == sum(sizes.values()) > 100
    assert unused.turns == turns.TELLING_TURNS
    page = client.get(url("costs", chat)).content.decode()
    assert "not called in 10 turns" in page
    off = re.findall(r'name="off" value="(\w+)"', page)
    answer = client.post(url("costs-tools", chat), {"off": off}, follow=True)
    assert Conversation.objects.get(pk=chat.pk).tools == ["calculate"]
    page = answer.content.decode()
    assert "are off from the next request on" in page
    assert "Turn them off" not in page
    on = re.findall(r'name="on" value="(\w+)"', page)
    client.post(url("costs-tools", chat), {"on": [*on, "unheard_of"]})
    assert set(Conversation.objects.get(pk=chat.pk).tools) == set(TOOLS)
    assert [change.action for change in chat.changes.all()] == ["tools", "tools"]


def test_search_for_tools_is_not_one_that_can_be_taken_off(chat, settings):
    settings.TOOLS_ON_DEMAND = len(TOOLS) - 1
    for n in range(turns.TELLING_TURNS):
        say_with_offer(chat, f"Text {n}", tools=["find_tools"])
    assert registry.list_offered(chat) == ("find_tools",)
    assert read_history(chat).unused is None


def test_a_tool_that_is_new_has_not_been_tried(chat):
    for n in range(turns.TELLING_TURNS + 2):
        offered = TOOLS if n > 5 else TOOLS[:1]
        say_with_offer(chat, f"Text {n}", tools=offered)
    assert read_history(chat).unused.names == TOOLS[:1]


def test_the_page_has_a_strip_and_a_table(client, chat, settings):
    settings.PRICE_INPUT = 3.0
    for n in range(3):
        say(chat, f"Text {n} <b>", tokens_input=1_500)
    for call in ModelCall.objects.filter(conversation=chat):
        plant(call, model="gpt-9")
    with CaptureQueriesContext(connection) as asked:
        page = client.get(url("costs", chat)).content.decode()
    assert len(asked) <= 10, [each["sql"] for each in asked.captured_queries]
    assert page.count('class="part-newest"') == 3 + 1
    assert page.count(f"{url('compare', chat)}?reply=") == 3
    assert "$0.004500" in page
    assert "<td>1,500</td>" in page


def test_an_empty_conversation_says_so(client, chat):
    assert "no reply yet" in client.get(url("costs", chat)).content.decode()
    assert client.get(url("costs-json", chat)).json()["turns"] == []
    assert url("costs", chat) in page_of(client, chat)


def test_strangers_find_nothing_and_change_nothing(bob, chat):
    stranger = signed_in(bob)
    for name in ("costs", "costs-json"):
        assert stranger.get(url(name, chat)).status_code == 404
    taken = stranger.post(url("costs-tools", chat), {"off": TOOLS})
    assert taken.status_code == 404
    assert Conversation.objects.get(pk=chat.pk).tools == TOOLS
    assert not ModelCall.objects.exists()


def test_images_are_counted_without_their_bytes(chat):
    message = ask(chat, "Look at this")
    built = context.build_request_context(chat, newest=message, model="m")
    built.refs["images"] = [[message.seq, 0, 765]]
    built = replace(built, tokens=built.tokens + 765)
    record(chat, built, reply_to(message, "A cat."), tokens_input=900)
    with CaptureQueriesContext(connection) as asked:
        [turn] = read_history(chat).turns
    assert turn.count_tokens("newest") > 765
    assert not [each for each in asked.captured_queries if "image" in each["sql"]]
