"""bench.neighbours: its figures and its table, and one entrance of a real site."""

import json
import pickle
from collections import Counter

import pytest

from bench.neighbours import entrances, texts
from bench.neighbours.figures import Figures, name_answers, write_table
from bench.neighbours.measure import measure
from bench.provider import running_provider
from tests.patience import PATIENCE


def test_late_is_what_comes_on_top_of_a_quiet_median():
    figures = Figures("search", [0.1, 0.2, 0.9], [0.3, 0.5, 0.6])
    assert figures.late == pytest.approx(0.3)
    assert figures.latest == pytest.approx(0.4)
    assert not figures.is_late
    figures.attacked.append(0.75)
    assert figures.is_late


def test_the_table_has_a_row_for_each_entrance_and_marks_what_is_late():
    quick = Figures("search", [0.02], [0.01, 0.03], Counter({"× 200": 1_200}))
    slow = Figures("imports", [0.1], [0.2, 9.1])
    assert write_table([quick, slow]).splitlines() == [
        "| entrance | quiet | under attack | late by | what the attacker got |",
        "| --- | ---: | ---: | ---: | --- |",
        "| search | 0.02 / 0.02 | 0.02 / 0.03 | 0.00 / 0.01 | 1,200 × 200 |",
        "| imports | 0.10 / 0.10 | 4.65 / 9.10 | **4.55 / 9.00** | nothing |",
    ]


def test_table_names_the_most_frequent_answers_only():
    counted = Counter({f"kind {number}": number for number in range(1, 9)})
    assert name_answers(counted).split(", ") == [
        f"{number} kind {number}" for number in (8, 7, 6, 5, 4)
    ]


@pytest.mark.parametrize("name", entrances.ENTRANCES)
def test_a_entrance_can_be_sent_to_the_process_of_the_attacker(name):
    entrance = entrances.ENTRANCES[name]
    assert entrance.__doc__
    assert 0 < entrance.lead < entrance.seconds <= 10
    assert type(pickle.loads(pickle.dumps(entrance))) is type(entrance)  # noqa: S301
    assert [entrance] == list(entrances.find([name])) or entrance in entrances.find(
        [name]
    )


def test_a_entrance_is_named_by_its_beginning():
    assert [each.name for each in entrances.find(["LOG"])] == ["log-ins"]
    assert len(list(entrances.find([]))) == len(entrances.ENTRANCES)
    assert not list(entrances.find(["nothing"]))


def test_texts_have_the_greatest_allowed_length():
    for kind in range(len(texts.UNITS)):
        assert len(texts.write_hostile(kind)) == texts.TYPED - 100
    assert all(len(texts.write_slow_text(n)) <= texts.TYPED for n in range(3))
    talks = json.loads(texts.make_talk(3, 500, count=2))
    assert [len(talk["chat_messages"]) for talk in talks] == [3, 3]
    assert len(talks[0]["chat_messages"][2]["text"]) == 500
    assert len(texts.make_slow_pdf()) < 1_000_000


class TwoHands(entrances.Conversations):
    hands = 2
    # Both cores are busy as long as this takes.
    seconds, lead = 0.75 * PATIENCE, 0.1


@pytest.mark.server
def test_a_entrance_is_measured_on_a_real_site(tmp_path):
    static = tmp_path / "static"
    static.mkdir()
    (static / "staticfiles.json").write_text('{"version": "1.1", "paths": {}}')
    with running_provider("bench.neighbours.provider") as url:
        figures = measure(TwoHands(), url, static)
    assert len(figures.quiet) >= 4
    assert figures.attacked
    assert 0 < min(figures.quiet) < 20
    assert figures.answers["× 200"] > 0, figures.answers
