"""The form of export.json, and its schema, held against exports."""

import json
from pathlib import Path
from typing import get_args

import jsonschema
import pytest

from chatsite.features.feedback.services import give_feedback
from chatsite.features.importing.exporting.thread import dump_export, export_thread
from chatsite.features.importing.thread_format import build_thread_state
from chatsite.features.tools import late_results
from chatsite.turns import lifecycle
from tests.fakes import own_tools
from tests.memory.scenes import summarise

from ...scenes import answer, submit
from ..attachments.images.scenes import send_images
from ..tools import calls

pytestmark = pytest.mark.django_db
PARTS = (
    *("messages", "tool_calls", "summaries", "model_calls", "rules"),
    *("feedback", "files", "images"),
)
PAGE = Path(__file__).parents[4] / "docs" / "thread-state.schema.json"


@pytest.fixture
def exported(alice, settings):
    """A conversation with every kind of row, as export.json has it."""
    settings.TOOLS = own_tools.PATHS
    conversation = calls.create(alice)
    send_images(conversation, text="Hello. Always answer in rhyme.")
    answer(conversation)
    give_feedback(conversation, 2, "bad", "Too short.")
    summarise(conversation, 1, 2)
    claim, (mail, order) = calls.ask(
        conversation, ("send_mail", {"to": "bob"}), ("order", {"what": "tea"})
    )
    late = calls.postpone(claim, order)
    calls.wait(claim, mail)
    picture = own_tools._file(own_tools.PNG, "image/png", "tea.png")
    text = {"type": "text", "text": "The tea is here."}
    late_results.deliver(late.pk, [text, picture])
    return json.loads(dump_export(export_thread(conversation)))


@pytest.fixture(scope="module")
def schema():
    return build_thread_state().model_json_schema(mode="serialization")


def test_the_schema_is_the_one_of_the_docs(schema):
    assert PAGE.read_text() == json.dumps(schema, indent=1) + "\n"


def test_an_export_follows_it(schema, exported):
    jsonschema.validate(exported, schema)
    state = build_thread_state().model_validate(exported)
    assert [call.state for call in state.tool_calls] == ["waiting", "done"]
    assert [row.late_for for row in state.messages if row.late_for] == [4]
    assert len(state.messages) == len(exported["messages"])


def test_a_reply_that_is_being_written_follows_it(schema, conversation):
    submit(conversation, "Go on")
    lifecycle.checkpoint(lifecycle.claim(conversation.pk), "Part")
    whole = json.loads(dump_export(export_thread(conversation)))
    assert whole["messages"][-1]["text"] == "Part"
    jsonschema.validate(whole, schema)


@pytest.mark.parametrize("part", PARTS)
def test_row_with_more_or_fewer_fields_is_invalid(schema, exported, part):
    row = exported[part][0]
    for wrong in ({**row, "other": 1}, {}):
        changed = {**exported, part: [wrong]}
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(changed, schema)


@pytest.mark.parametrize("part", [*PARTS, "conversation"])
def test_models_have_the_names_of_written_fields_alone(exported, part):
    rows = exported[part] if part in PARTS else [exported[part]]
    field = build_thread_state().model_fields[part].annotation
    form = get_args(field)[0] if part in PARTS else field
    assert form.model_fields.keys() == rows[0].keys()
