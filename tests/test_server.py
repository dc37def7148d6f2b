"""The whole site as a process under daphne, used from outside."""

import hashlib
import json
import urllib.error

import pytest

from memory.engine.policy import ADAPTIVE_MAX

from .clients import Person, text_of
from .patience import wait_for, within
from .servers import Site

pytestmark = pytest.mark.server


def serve(database, **env):
    """A site for all tests of this file. In the end its rows are whole."""
    with database as url, Site({"DATABASE_URL": url, **env}) as site:
        yield site
        assert "clean" in site.manage("audit")


@pytest.fixture(scope="module")
def _demo(new_database):
    yield from serve(new_database())


@pytest.fixture(scope="module")
def _provided(new_database, provider):
    keys = {"OPENAI_BASE_URL": provider.url, "OPENAI_API_KEY": "sk-test"}
    yield from serve(new_database(), **keys, CHAT_MODEL="ok")


@pytest.fixture
def site(_demo):
    yield _demo
    _demo.show_log()


@pytest.fixture
def provided(_provided):
    """A site that is configured for the fake provider."""
    yield _provided
    _provided.show_log()


def sha256(messages):
    text = json.dumps(
        messages, ensure_ascii=False, sort_keys=True, separators=(",", ":")
    )
    return hashlib.sha256(text.encode()).hexdigest()


def messages_of(person, path):
    return person.get_json(f"{path}transcript.json")["messages"]


def summaries_of(person, path, status="active"):
    rows = person.get_json(f"{path}summaries.json")["summaries"]
    return [row for row in rows if row["status"] == status]


def test_twenty_messages_with_the_demo_model_compaction_twice(site):
    person = Person(site, "ann")
    path = person.create("langgraph")
    with person.chat(path) as chat:
        chat.say("hi! I'm Lance")
        for number in range(9):
            chat.say(f"Note that box {number} holds {number * 11} apples.")
        compacted = [row["version"] for row in summaries_of(person, path, "superseded")]
        assert len(messages_of(person, path)) == 20
        wait_for(lambda: summaries_of(person, path)[0]["version"] >= 2)
        assert "Lance" in chat.say("what's my name?")["text"]
    assert compacted


def test_a_long_conversation_compacts_under_the_default(site):
    person = Person(site, "ben")
    path = person.create()
    with person.chat(path) as chat:
        for number in range(12):
            chat.say(f"Report {number}: " + "The harbour was calm and busy. " * 120)
        wait_for(lambda: summaries_of(person, path), what="a summary")
    context = person.get_json(f"{path}context.json")
    assert context["tokens"]["estimated"] < ADAPTIVE_MAX


def test_the_upstream_got_exactly_what_the_context_says(provided, provider):
    person = Person(provided, "cleo")
    path = person.create("langgraph")
    before = len(provider.requests)
    with person.chat(path) as chat:
        for number in range(11):
            chat.say(f"Fact {number}: “{number}” 号房间 \U0001f600")
        wait_for(lambda: summaries_of(person, path)[0]["version"] >= 2)
    replies = [row for row in messages_of(person, path) if row["role"] == "assistant"]
    bodies = [
        request.messages
        for request in provider.requests[before:]
        if "[windowpane:summarise]" not in request.messages[0]["content"]
    ]
    assert len(bodies) == len(replies) == 11
    for body, reply in zip(bodies, replies, strict=True):
        context = person.get_json(f"{path}context.json?reply={reply['seq']}")
        assert context["messages"] == body
        assert context["sha256"] == sha256(body)


def test_every_tab_shows_the_same_text(provided, provider):
    person = Person(provided, "dora")
    path = person.create()
    provider.script("ok-slow:150:0.02")
    with person.chat(path) as chat:
        ack = chat.send("Tell me a lot")
        first = chat.until("frame")
        with person.chat(path) as late:
            late.command(type="sync")
            seen = late.until("end", turn=ack["turn"])
        first += chat.until("end", turn=ack["turn"])
    text = messages_of(person, path)[-1]["text"]
    assert text_of(first) == text_of(seen) == first[-1]["text"] == text


def test_a_second_tab_stops_the_reply(provided, provider):
    person = Person(provided, "emil")
    path = person.create()
    provider.script("ok-slow:2000:0.02")
    with person.chat(path) as chat, person.chat(path) as tab:
        ack = chat.send("Tell me a lot")
        chat.until("frame")
        closed = provider.closed_early
        with within(1):
            tab.command(type="stop", turn=ack["turn"])
            ends = [each.until("end", turn=ack["turn"])[-1] for each in (chat, tab)]
    assert ends[0] == ends[1]
    assert messages_of(person, path)[-1]["text"] == ends[0]["text"]
    assert provider.wait_closed_early(closed + 1)


def test_a_stranger_sees_a_404_everywhere(site):
    path = Person(site, "fay").create()
    bob = Person(site, "bob")
    missing = "/c/00000000-0000-4000-8000-000000000000/"
    for suffix in ("", "transcript.json", "context.json", "summaries.json"):
        bodies = []
        for base in (path, missing):
            with pytest.raises(urllib.error.HTTPError) as refused:
                bob.get(base + suffix)
            assert refused.value.code == 404
            uuid = base.split("/")[2].encode()
            bodies.append(refused.value.read().replace(uuid, b""))
        assert bodies[0] == bodies[1]
