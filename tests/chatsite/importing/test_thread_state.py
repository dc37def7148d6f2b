"""The schema of a thread's state, held against exports."""

import json
from pathlib import Path

import pytest
from django.core.serializers.json import DjangoJSONEncoder
from pydantic import ValidationError

from chatsite.feedback.services import give_feedback
from chatsite.importing.exporting.thread import export_thread
from chatsite.importing.thread_state import build_thread_state
from chatsite.turns import late_results
from tests.fakes import own_tools
from tests.memory.scenes import summarise

from ..scenes import answer, submit
from ..turns import calls

pytestmark = pytest.mark.django_db
PARTS = (
    *("messages", "tool_calls", "summaries", "model_calls", "rules"),
    *("feedback", "files"),
)
PAGE = Path(__file__).parents[3] / "docs" / "thread-state.schema.json"


@pytest.fixture
def exported(alice, settings):
    """A conversation with every kind of row, as export.json has it."""
    settings.TOOLS = own_tools.PATHS
    conversation = calls.create(alice)
    submit(conversation, "Hello. Always answer in rhyme.")
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
    whole = json.dumps(export_thread(conversation), cls=DjangoJSONEncoder)
    return json.loads(whole)


def test_the_schema_is_the_one_of_the_docs():
    written = json.dumps(build_thread_state().model_json_schema(), indent=1)
    assert PAGE.read_text() == written + "\n"


def test_an_export_follows_it(exported):
    state = build_thread_state().model_validate(exported)
    assert [call.state for call in state.tool_calls] == ["waiting", "done"]
    assert [row.late_for for row in state.messages if row.late_for] == [4]
    assert len(state.messages) == len(exported["messages"])


@pytest.mark.parametrize("part", PARTS)
def test_no_part_has_more_or_less_than_it_says(exported, part):
    name = next(iter(exported[part][0]))
    for wrong in ({**exported[part][0], "other": 1}, {}):
        changed = {**exported, part: [wrong]}
        with pytest.raises(ValidationError):
            build_thread_state().model_validate(changed)
    assert name in exported[part][0]
