"""Decisions have a bounded cost, whatever is sent."""

import sys

import pytest

from bench.endpoint.in_memory import MemoryStore
from chatsite.contrib.endpoint.identity.deciding import decide_lineage
from chatsite.contrib.endpoint.identity.hints import Hints
from chatsite.contrib.endpoint.identity.history import read_history
from chatsite.contrib.endpoint.identity.known import MOST_HASHES

from .clients import LONG, reply, user


class CountingStore(MemoryStore):
    """Remembers how much was asked at once, and read."""

    asked = read = 0

    def _find(self, table, hashes):
        self.asked = max(self.asked, len(hashes))
        return super()._find(table, hashes)

    def read_path(self, conversation, first):
        path = super().read_path(conversation, first)
        self.read += len(path)
        return path


def talk_of(count):
    return [
        reply(f"Answer {n}") if n % 2 else user(f"Question {n}") for n in range(count)
    ]


def take(store, messages, hints=Hints()):  # noqa: B008
    history = read_history("chat", {"messages": messages})
    decision = decide_lineage(history, hints, store)
    store.take(history, hints, decision)
    return decision


@pytest.fixture
def store():
    """2,000 messages are known."""
    store = CountingStore()
    take(store, talk_of(2000))
    store.lookups = 0
    return store


def test_going_on_takes_one_look_up(store):
    assert take(store, [*talk_of(2000), user("And?")]).kind == "continued"
    assert (store.lookups, store.read) == (1, 0)


def test_an_early_edit_takes_few(store):
    take(store, [*talk_of(700), user("Else?")])
    assert store.lookups < 12
    assert store.asked <= MOST_HASHES


def test_a_history_of_which_nothing_is_known_takes_few(store):
    take(store, [user(f"Other {n}") for n in range(5000)])
    assert store.lookups < 12
    assert store.asked <= MOST_HASHES


def test_many_conversations_with_one_beginning_are_not_all_read(store):
    for _ in range(100):
        take(store, [user("Hello"), reply(LONG), user("Say more")])
    store.lookups = store.read = 0
    take(store, [user("Hello"), reply(LONG), reply("Else"), user("Say more")])
    assert store.lookups < 60
    assert store.read < 100


def test_deep_nesting_is_refused_and_read_in_calls():
    deep = "[" * (sys.getrecursionlimit() * 2)
    function = {"name": "f", "arguments": deep}
    calls = [{"id": "1", "type": "function", "function": function}]
    history = read_history("chat", {"messages": [reply(None, tool_calls=calls)]})
    assert deep in history.messages[0].text
