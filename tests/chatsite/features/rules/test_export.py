"""Rules of a conversation that is branched, exported and imported."""

import copy
import json

import pytest
from django.core.serializers.json import DjangoJSONEncoder

from chatsite.features.importing.exporting.thread import export_thread
from chatsite.features.importing.files import own
from chatsite.features.rules import export, store
from chatsite.features.rules.services import confirm_rule
from chatsite.turns.copying import copies
from memory import bundle, context, transcript
from memory.view import rebuilding

from ...scenes import talk_in_turns, violations

pytestmark = pytest.mark.django_db(transaction=True)

WORDS = "Always answer in rhyme."


@pytest.fixture
def chat(alice):
    made = transcript.create_conversation(alice)
    talk_in_turns(made, f"Hello. {WORDS}", "I'm allergic to nuts.")
    made.refresh_from_db()
    first, second = made.rules.order_by("pk")
    confirm_rule(made, first.pk, room=1000)
    confirm_rule(made, second.pk, room=1000, text="I can't eat nuts.")
    talk_in_turns(made, "Go on")
    made.refresh_from_db()
    return made


def exported(chat):
    return json.loads(json.dumps(export_thread(chat), cls=DjangoJSONEncoder))


def imported(user, value):
    draft = own.read_export(copy.deepcopy(value), user.pk)
    made = transcript.create_conversation(user, policy=draft.policy)
    messages = bundle.write_bundle(made, draft.bundle)
    assert bundle.drop_unproved(made) == 0
    copies.write_turns(made, messages, draft.infos)
    export.write_rules(made, messages, draft.sections["rules"])
    made.refresh_from_db()
    return made


def test_a_branch_keeps_its_rules(chat):
    made = copies.branch_conversation(chat, 2)
    assert made.rule_count == 1
    assert (
        WORDS
        in context.build_request_context(made).context.get_section("rules")[0].text
    )
    assert violations() == []


def test_an_import_proves_what_was_sent_and_offers_what_was_in_force(chat, bob):
    value = exported(chat)
    assert [rule["state"] for rule in value["rules"]] == ["confirmed", "confirmed"]
    made = imported(bob, value)
    assert set(made.rules.values_list("state", flat=True)) == {"offered"}
    assert context.build_request_context(made).context.get_section("rules") == ()
    call = made.model_calls.latest("pk")
    assert len(call.refs["rules"]) == 2
    assert rebuilding.verify_context(call)
    assert violations() == []


@pytest.mark.parametrize(
    "change",
    [
        {"seq": 2},
        {"seq": 99},
        {"seq": None},
        {"end": 10_000},
        {"start": 9, "end": 9},
    ],
)
def test_rule_that_the_user_did_not_state_is_left_out(chat, bob, change):
    value = exported(chat)
    value["rules"] = [value["rules"][0] | change]
    assert not imported(bob, value).rules.exists()


def test_a_place_given_twice_is_one_rule(chat, bob):
    value = exported(chat)
    value["rules"] *= 3
    assert imported(bob, value).rules.count() == 2


def test_rules_of_a_file_for_which_there_is_no_room_are_named(chat, bob, monkeypatch):
    value = exported(chat)
    draft = own.read_export(value, bob.pk)
    made = transcript.create_conversation(bob, policy=draft.policy)
    messages = bundle.write_bundle(made, draft.bundle)
    for module in (export, store):
        monkeypatch.setattr(module, "MOST_UNCONFIRMED", 1)
    said = export.write_rules(made, messages, draft.sections["rules"])
    assert made.rules.count() == 1
    assert said == "Not imported, as 1 can wait for an answer: 1 of its rules."
