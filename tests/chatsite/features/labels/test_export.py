"""The labels of a conversation that is exported, imported and branched."""

import pytest

from chatsite.features.importing.exporting.thread import export_thread
from chatsite.features.labels import services
from chatsite.features.labels.services import (
    find_or_make_labels,
    give_labels,
    list_labels,
)
from chatsite.turns.copying import copies
from memory import transcript

from ...scenes import talk_in_turns
from ..importing.test_importing import as_json, refusal, take

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def chat(alice):
    made = transcript.create_conversation(alice, title="Kyoto")
    talk_in_turns(made, "Hello", "Go on")
    give_labels(find_or_make_labels(alice, ["Travel", "Work"]), [made])
    return made


@pytest.fixture
def exported(chat):
    return as_json(export_thread(chat))


def test_import_restores_labels_as_far_as_there_is_room(bob, exported, monkeypatch):
    assert exported["conversation"]["labels"] == ["Travel", "Work"]
    monkeypatch.setattr(services, "MOST", 2)
    known = find_or_make_labels(bob, ["work", "Home"])
    outcome = take(bob, exported)
    [made] = outcome.imported
    assert list(made.labels.all()) == known[:1]
    assert list_labels(bob).count() == 2
    [told] = outcome.notices
    assert "without the labels Travel: you have reached the limit of 2" in told


def test_a_file_from_before_there_were_labels_has_none(bob, exported):
    del exported["conversation"]["labels"]
    [made] = take(bob, exported).imported
    assert not made.labels.exists()


@pytest.mark.parametrize(
    ("names", "place"),
    [
        (["x", " "], "its settings can't be read: expected the name of a label"),
        (["x" * 41], "its settings"),
        (["x"] * 51, "at most 50 entries"),
    ],
)
def test_errors_of_a_file_have_their_place(bob, exported, names, place):
    exported["conversation"]["labels"] = names
    assert place in refusal(bob, exported)


def test_a_branch_has_the_labels_of_its_conversation(chat):
    made = copies.branch_conversation(chat, 2)
    assert [label.name for label in made.labels.all()] == ["Travel", "Work"]
