"""References of requests in any shape: a conversation with them opens everywhere."""

import hashlib
from copy import deepcopy

import pytest
from django.contrib.auth import get_user_model
from django.urls import reverse

from chatsite.features.importing.exporting.thread import export_thread
from chatsite.pages.presenters.rules import SentTool
from memory import library, transcript
from memory.view import rebuilding
from tests.memory.scenes import summarise
from tests.remembered import remembered

from ...scenes import signed_in, talk_in_turns, url, violations
from .test_importing import as_json, take

pytestmark = pytest.mark.django_db
DEEP = "[" * 5_000 + "]" * 5_000
NESTED = '{"a":' * 900 + "1" + "}" * 900
SHAPES = (None, 5, "x", [5], [[1, "x"]], {"a": [1]})
TOOLS = (
    *("", "null", "5", '"x"', "{}", '{"a": 1}', "[5]", '["x", null, []]', "no JSON"),
    *('[{"function": "x"}]', '[{"function": {"name": ["x"]}}]', '[{"type": 5}]', DEEP),
    *('[{"function": {"name": "a", "description": 5}}]', NESTED),
)
# Of references, those that only some requests have, or that no form bounds.
NAMES = ("shape", "until", "edited", "cut", "instruction", "asked", "extras", "client")
REFERENCES = [
    ("client", {"wire": "gone", "pieces": [], "between": []}),
    ("client", {"wire": ["x"], "pieces": [[1, 2**62]], "between": "x"}),
    *((name, shape) for name in NAMES for shape in SHAPES),
]
OF_SUMMARIES = [
    *(("structured", value) for value in ({}, {"a": 5}, {"": [[{}], None]})),
    *(("flags", value) for value in ({"x": ["y"]}, {"unsupported": [""]})),
    *(("trigger", {"kind": "x", "value": value}) for value in ("x", 0.5, None)),
]


@pytest.fixture
@remembered
def written(bob):
    """A conversation with a summary, as it is exported."""
    made = transcript.create_conversation(bob)
    talk_in_turns(made, "One", "Two")
    summarise(made, 1, 2)
    talk_in_turns(made, "Three")
    return as_json(export_thread(made))


def open_everywhere(conversation):
    """Each page that shows what was imported."""
    client = signed_in(conversation.owner)
    for name in ("detail", "context", "context-json", "summaries", "transcript"):
        assert client.get(url(name, conversation)).status_code == 200, name
    for name in ("export-json", "export-md"):
        answer = client.get(url(name, conversation))
        assert answer.status_code == 200
        assert b"".join(answer) if answer.streaming else answer.content
    replies = conversation.model_calls.filter(message__isnull=False)
    for seq in replies.values_list("message__seq", flat=True):
        for name in ("context", "context-json"):
            answer = client.get(url(name, conversation), {"reply": seq})
            assert answer.status_code == 200, (name, seq)
    users = get_user_model().objects
    staff = signed_in(users.create_superuser(f"root{conversation.pk}"))
    pages = [
        ("conversation", conversation.pk),
        *(("modelcall", row.pk) for row in conversation.model_calls.all()),
        *(("summary", row.pk) for row in conversation.summaries.all()),
    ]
    for name, key in pages:
        answer = staff.get(reverse(f"admin:memory_{name}_change", args=[key]))
        assert answer.status_code == 200, name


def import_changed(user, written, changes):
    """Import a conversation with a change in each of its replies' requests."""
    value = deepcopy(written)
    calls = [row for row in value["model_calls"] if row["purpose"] == "reply"]
    for call, change in zip(calls, changes, strict=False):
        change(value, call)
    outcome = take(user, {"conversations": [value]})
    assert outcome.notices == []
    assert violations() == []
    [made] = outcome.imported
    return made


def in_threes(rows):
    return [rows[n : n + 3] for n in range(0, len(rows), 3)]


def put_tools(text):
    def change(value, call):
        digest = hashlib.sha256(text.encode()).hexdigest()
        value["prompts"][digest] = text
        call["refs"] |= {"tools": ["x"], "tools_sha256": digest}

    return change


def put_reference(name, shape):
    return lambda _value, call: call["refs"].update({name: shape})


def test_texts_that_are_no_tools_open_everywhere(alice, written):
    for texts in in_threes(TOOLS):
        made = import_changed(alice, written, map(put_tools, texts))
        open_everywhere(made)
        library.erase_conversation(made)


@pytest.mark.parametrize("is_on", [True, False])
def test_requests_of_other_clients_are_not_imported(alice, written, monkeypatch, is_on):
    """Only this site's own `endpoint` could prove them, now or once it is on."""
    if not is_on:
        monkeypatch.delitem(rebuilding.rebuilders, "client")
    sent = {"wire": "chat", "pieces": [], "between": []}
    made = import_changed(alice, written, [put_reference("client", sent)])
    assert not made.model_calls.filter(refs__has_key="client").exists()


def test_references_of_any_shape_open_everywhere(alice, written):
    for some in in_threes(REFERENCES):
        changes = (put_reference(*each) for each in some)
        made = import_changed(alice, written, changes)
        open_everywhere(made)
        library.erase_conversation(made)


def test_data_of_summaries_of_any_shape_opens_everywhere(alice, written):
    for name, shape in OF_SUMMARIES:
        value = deepcopy(written)
        value["summaries"][0][name] = shape
        made = import_changed(alice, value, [])
        open_everywhere(made)
        library.erase_conversation(made)


@pytest.mark.parametrize("text", TOOLS)
def test_any_definition_of_a_tool_is_shown(text):
    """A client's body or an older import can have it."""
    for each in rebuilding.read_definitions(text):
        shown = SentTool.from_definition(each)
        assert isinstance(shown.label, str)
        assert shown.schema
