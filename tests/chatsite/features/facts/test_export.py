"""Facts in the files of an export, and in an import of them."""

import pytest

from chatsite.features.facts import export, services
from chatsite.features.facts.models import Fact
from chatsite.features.importing.exporting.for_staff import mask_export
from chatsite.features.importing.exporting.thread import export_thread

from ...scenes import violations
from ..importing.test_importing import as_json, take
from .scenes import keep_fact, start, state_fact

pytestmark = pytest.mark.django_db
ALLERGY = "I am allergic to nuts."


def of(made):
    return [each for each in violations() if f"conversation={made.pk} " in each]


@pytest.fixture
def file(alice):
    made = start(alice)
    keep_fact(made, ALLERGY, text="I can eat no nuts.")
    return as_json(export_thread(made))


def test_kept_fact_comes_back_as_an_offer_in_its_own_words(bob, file):
    [made] = take(bob, file).imported
    fact = services.list_facts(bob.pk)["offered"][0]
    assert (fact.words, fact.conversation) == ("I can eat no nuts.", made)
    assert fact.worded_at
    [again] = as_json(export_thread(made))["facts"]
    written = {**file["facts"][0], "state": "offered"}
    assert {**again, "created_at": written["created_at"]} == written
    assert of(made) == []


@pytest.mark.parametrize(
    "wrong", [{"seq": 2}, {"seq": 99}, {"end": 999}, {"start": 9, "end": 9}]
)
def test_fact_that_was_not_said_is_left_out(bob, file, wrong):
    file["facts"][0] |= wrong
    [made] = take(bob, file).imported
    assert not Fact.objects.filter(owner=bob).exists()
    assert of(made) == []


def test_facts_of_a_file_take_no_room_of_others(bob, file, monkeypatch):
    monkeypatch.setattr(export, "MOST_OFFERED", 1)
    state_fact(start(bob), ALLERGY)
    own = Fact.objects.get(owner=bob)
    outcome = take(bob, file)
    assert outcome.imported
    assert (
        "Not imported, as 1 can wait for an answer: 1 of its facts."
        in outcome.notices[0]
    )
    assert Fact.objects.get(owner=bob) == own


def test_fact_of_a_masked_file_has_no_words(alice, file):
    [row] = mask_export(file)["facts"]
    assert row["text"] is None
    assert row["text_length"] == len("I can eat no nuts.")
