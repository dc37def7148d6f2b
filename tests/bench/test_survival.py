"""The things of bench.survival, and memories that keep all, some or none of them."""

from collections import Counter

from langchain_core.messages import SystemMessage

from bench.memory.systems.base import System
from bench.memory.systems.windowpane import Windowpane
from bench.survival.play import PROBE, Survival, look_for, play, write_messages
from bench.survival.table import name_better, write_table
from bench.survival.things import KINDS, list_things


class Kept(System):
    """Sends these words and the newest message; a search finds others."""

    def __init__(self, words="", found=""):
        super().__init__(lambda request, max_tokens: "")
        self.words, self.found = words, found

    def take_turn(self, message):
        self.chat.invoke([SystemMessage(self.words), message])

    def recall(self, question):
        return [SystemMessage(self.found)]


def dict_of(number, *kinds):
    return Counter(dict.fromkeys(kinds or KINDS, number))


def test_two_hundred_things_are_different():
    things = list_things()
    said = [thing.sentence for thing in things]
    assert len({*said}) == len(said) == 200
    assert {kind: sum(t.kind == kind for t in things) for kind in KINDS} == (
        dict.fromkeys(KINDS, 20)
    )
    assert not any(one in other for one in said for other in said if one != other)


def test_messages_say_each_thing_once():
    things = list_things()
    talk = write_messages(things)
    said = [next(talk) for _ in range(230)]
    assert all(sum(t.sentence in text for text in said) == 1 for t in things)
    assert all(sum(t.earlier in text for text in said) == 1 for t in things[9::10])
    assert not any(thing.sentence in PROBE for thing in things)


def test_things_are_counted_by_kind():
    things = list_things()
    one, other = things[0], things[1]
    escaped = f"{one.sentence[:-1]}&#46;"
    whole, found = look_for(Kept(escaped, other.sentence), things, 1)
    assert (whole, found) == ({one.kind: 1}, {other.kind: 1})
    assert look_for(Kept(), things, 1) == ({}, {})


def test_windowpane_loses_none():
    survival = play("ours", lambda write: Windowpane(write, recall_tokens=500), 3)
    assert survival.compactions >= 3
    assert 0 < survival.whole.total() < 200
    assert survival.found.total() > 0


def test_table_names_kinds_of_which_another_has_more():
    whole = Survival("Windowpane", dict_of(5), dict_of(1), 50, 900)
    fewer = Survival("Other", dict_of(2), dict_of(0), 50, 900)
    assert name_better([whole, fewer]) == "Of no kind has another memory more."
    more = Survival("More", dict_of(2) + dict_of(9, "names"), dict_of(0), 50, 900)
    assert "Another memory has more of: names." in name_better([whole, fewer, more])
    rows = write_table([whole, more], "today").splitlines()
    assert rows[-2].startswith("| **Windowpane** | 5 + 1 |")
    assert rows[-1].startswith("| More | 11 |")
    assert rows[-1].endswith("| 29 | 50 in 900 turns |")
