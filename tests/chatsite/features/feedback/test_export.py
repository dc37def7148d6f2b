"""Feedback on replies of a conversation that is exported, imported and branched."""

import copy
import json
from datetime import datetime

import pytest
from django.core.serializers.json import DjangoJSONEncoder
from django.db import transaction

from chatsite.features.feedback import services
from chatsite.features.feedback.export import read_feedback, write_feedback
from chatsite.features.importing.exporting.as_markdown import write_markdown
from chatsite.features.importing.exporting.for_staff import mask_export, mask_text
from chatsite.features.importing.exporting.thread import export_thread
from chatsite.features.importing.files import own
from chatsite.features.importing.files.reading import ImportItemError
from chatsite.turns.copying import copies
from memory import bundle, transcript
from tests.remembered import remembered

from ...scenes import talk_in_turns, violations

pytestmark = pytest.mark.django_db(transaction=True)

WHY = "It forgot the budget."


@pytest.fixture
@remembered
def chat(alice):
    made = transcript.create_conversation(alice)
    talk_in_turns(made, "Hello", "Go on")
    services.give_feedback(made, 2, "bad", WHY)
    services.give_feedback(made, 4, "good")
    return made


@pytest.fixture
def exported(chat):
    return as_json(export_thread(chat))


def as_json(value):
    return json.loads(json.dumps(value, cls=DjangoJSONEncoder))


@transaction.atomic
def imported(user, value):
    draft = own.read_export(copy.deepcopy(value), user.pk)
    made = transcript.create_conversation(user, policy=draft.policy)
    messages = bundle.write_bundle(made, draft.bundle)
    copies.write_turns(made, messages, draft.infos)
    write_feedback(made, messages, draft.sections["feedback"])
    return made


def feedback_of(conversation):
    rows = conversation.feedback.order_by("message__seq")
    return list(rows.values_list("message__seq", "verdict", "comment"))


def timed(rows):
    """Return times as such: one of a whole second is written without its
    milliseconds.
    """
    names = ("created_at", "updated_at")
    return [
        row | {name: datetime.fromisoformat(row[name]) for name in names}
        for row in rows
    ]


def test_import_restores_feedback_with_its_times(exported, bob):
    made = imported(bob, exported)
    assert feedback_of(made) == [(2, "bad", WHY), (4, "good", "")]
    assert timed(as_json(read_feedback(made))) == timed(exported["feedback"])
    assert violations() == []


def test_an_export_from_before_has_none(exported, bob):
    del exported["feedback"]
    assert feedback_of(imported(bob, exported)) == []


@pytest.mark.parametrize("change", [{"seq": 1}, {"seq": 99}])
def test_feedback_on_no_reply_is_left_out(exported, bob, change):
    exported["feedback"] = [exported["feedback"][0] | change]
    assert feedback_of(imported(bob, exported)) == []


def test_a_reply_has_one(exported, bob):
    exported["feedback"] *= 3
    assert len(feedback_of(imported(bob, exported))) == 2


@pytest.mark.parametrize(
    "change", [{"verdict": "great"}, {"comment": "x" * 1_001}, {"seq": 0}]
)
def test_other_form_is_refused_with_its_place(exported, bob, change):
    exported["feedback"] = [exported["feedback"][0] | change]
    with pytest.raises(ImportItemError, match="feedback"):
        own.read_export(exported, bob.pk)


def test_a_branch_has_none_of_its_own(chat):
    assert feedback_of(copies.branch_conversation(chat, 4)) == []


def test_markdown_has_the_feedback(chat):
    text = write_markdown(chat)
    assert f"**Feedback: Bad**\n\n> {WHY}" in text
    assert text.count("**Feedback:") == 2
    masked = write_markdown(chat, show=mask_text)
    assert WHY not in masked
    assert "**Feedback: Bad**" in masked


def test_a_masked_copy_has_a_length_and_a_hash(exported):
    hidden = mask_export(exported)["feedback"][0]
    assert hidden["comment"] is None
    assert hidden["comment_length"] == len(WHY)
    assert hidden["verdict"] == "bad"
