"""Every table of an export, every value of an enumeration and every optional column,
found in the models and in the form of the file: what was exported is imported, and its
export is the same.
"""

import json
from typing import Literal, get_args, get_origin

import pytest
from django.db import models
from django.db.models import QuerySet
from django.utils import timezone

from chatsite.contrib.lab.examples.models import Example
from chatsite.contrib.lab.examples.services import mark_example
from chatsite.contrib.lab.trials.models import Trial
from chatsite.features.attachments.models import ImageFile, LongFile
from chatsite.features.facts.models import Fact
from chatsite.features.feedback.models import Feedback
from chatsite.features.feedback.services import give_feedback
from chatsite.features.importing import storing
from chatsite.features.importing.exporting.thread import dump_export, export_thread
from chatsite.features.importing.thread_format import build_thread_state
from chatsite.features.labels import services as labels
from chatsite.features.rules.models import Rule
from chatsite.features.tools import late_results
from chatsite.features.tools.models import ResultFile, ToolCall
from chatsite.features.tree.models import Branch
from chatsite.turns import lifecycle
from chatsite.turns.models import Turn
from memory import library
from memory.models import Conversation, Message, ModelCall, Summary
from memory.view import rebuilding
from tests.fakes import own_tools
from tests.memory.scenes import summarise
from tests.remembered import remembered

from ...scenes import Use, answer, signed_in, use_tools
from ..attachments.images.scenes import send_images
from ..attachments.long_files.scenes import keep_long, long_text, send_long
from ..tools import calls
from .test_importing import post, take

pytestmark = pytest.mark.django_db
TABLES = {
    "conversation": Conversation,
    "messages": Message,
    "summaries": Summary,
    "model_calls": ModelCall,
    "tool_calls": ToolCall,
    "files": ResultFile,
    "feedback": Feedback,
    "rules": Rule,
    "facts": Fact,
    "examples": Example,
    "trials": Trial,
    "images": ImageFile,
    "long_files": LongFile,
    "branches": Branch,
}
# Values that are of a turn, and stand at each of its messages.
OF_TURNS = ("state", "error")
# Columns that say where a row belongs: other values are another conversation.
PLACES = {
    *("seq", "place", "role", "call_id", "tool_call_id", "late_for", "version"),
    *("first_seq", "last_seq", "start", "end", "turn", "uuid", "sent_text", "sha256"),
    *("attachments", "tool_calls", "parent", "data", "small", "pages", "listed"),
    *("prompts", "created_at", "imported_at", "deleted_at", "superseded_at", "policy"),
}
# Of a call of a tool, the name is in its message; the model of a conversation is taken
# where it is offered.
OF_OTHERS = {
    *(("tool_calls", "name"), ("conversation", "model")),
    # It proves the rest of the request.
    ("model_calls", "body_sha256"),
}
# What no code of the site writes there.
UNWRITTEN = {
    ("conversation", "system_prompt"): [""],
    ("messages", "client_id"): [""],
    ("messages", "state"): [*Turn.UNFINISHED],
    ("summaries", "text"): [""],
    ("files", "source"): [0],
    ("trials", "finished_at"): [None],
}
GONE = object()
# An import changes these on purpose: a copy runs nothing, nothing waits in it, and no
# rule is in force before its owner has seen it.
CHANGED = {
    ("tool_calls", "state"): {
        **dict.fromkeys(["asked", "waiting", "late"], "cancelled"),
        "running": "unknown",
    },
    ("rules", "state"): {"kept": "offered", "confirmed": "offered"},
    ("facts", "state"): {"kept": "offered", "here": "offered"},
    ("conversation", "title_set_by"): dict.fromkeys(["", "auto"], "copy"),
    ("trials", "state"): dict.fromkeys(["queued", "running"], GONE),
}
# A copy waits for no answer.
NOT_COPIED = {("tool_calls", "expires_at"), ("tool_calls", "deadline_at")}
# What a summary can't be without, in each state.
BESIDE = {
    ("summaries", "status"): {
        **dict.fromkeys(["erased", "failed", "rejected"], {"text": ""}),
        "erased": {"text": "", "structured": None, "flags": {}},
    },
    ("summaries", "error"): {"x" * 100: {"status": "failed", "text": ""}},
}


def find_row(name):
    return build_thread_state().model_fields[name].annotation


def row_of(name):
    found = find_row(name)
    return get_args(found)[0] if get_origin(found) is list else found


def list_literals(annotation):
    if get_origin(annotation) is Literal:
        return {*get_args(annotation)}
    return set().union(*map(list_literals, get_args(annotation)))


def find_column(name, field):
    model = Turn if name == "messages" and field in OF_TURNS else TABLES[name]
    found = {each.name: each for each in model._meta.concrete_fields}
    return model, found.get(field)


ENDS = {
    models.DateTimeField: [timezone.now().replace(microsecond=123_000)],
    models.BooleanField: [True, False],
    models.FloatField: [0.0, 2.0],
    models.PositiveSmallIntegerField: [0, 2**15 - 1],
    models.PositiveIntegerField: [0, 2**31 - 1],
    models.PositiveBigIntegerField: [0, 2**53],
    models.TextField: ["Words. 汉字"],
}


def list_values(column):
    """Values that the column takes, from one end to the other."""
    if column.choices:
        found = [value for value, _label in column.flatchoices]
    elif type(column) is models.CharField:
        found = ["x" * column.max_length]
    else:
        found = [*ENDS.get(type(column), ())]
    is_text = isinstance(column, models.CharField | models.TextField)
    found += [""] if column.blank and is_text and not column.choices else []
    return found + ([None] if column.null else [])


def list_cases():
    for name in TABLES:
        for field in row_of(name).model_fields:
            _model, column = find_column(name, field)
            is_plain = column is not None and not column.is_relation
            is_own = field not in PLACES and (name, field) not in OF_OTHERS
            if is_plain and is_own and [*list_values(column)]:
                yield pytest.param(name, field, id=f"{name}-{field}")


def list_enumerations():
    for name in TABLES:
        for field in row_of(name).model_fields:
            _model, column = find_column(name, field)
            if column is not None and column.choices:
                yield pytest.param(name, field, id=f"{name}-{field}")


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    """Remove the pauses: other processes never wait for the database here."""
    monkeypatch.setattr(storing, "MAX_PAUSE", 0)


@pytest.fixture
@remembered
def talk(bob, settings):
    """A conversation of Bob with a row of nearly each table."""
    settings.TOOLS = own_tools.PATHS
    made = calls.create(bob)
    send_images(made, text="Hello. Always answer in rhyme.")
    answer(made)
    give_feedback(made, 2, "bad", "Too short.")
    mark_example(made, 2, bob, "wrong", "Hello, dear.")
    labels.give_labels(labels.find_or_make_labels(bob, ["Work"]), [made])
    summarise(made, 1, 2)
    use_tools(made, "Search", Use())
    claim, (order,) = calls.ask(made, ("order", {"what": "tea"}))
    late = calls.postpone(claim, order)
    lifecycle.finish(claim, lifecycle.TurnResult(Turn.State.DONE, "It is on its way."))
    picture = own_tools._file(own_tools.PNG, "image/png", "tea.png")
    late_results.deliver(late.pk, [{"type": "text", "text": "Here."}, picture])
    said = {"owner": bob, "message": made.messages.get(seq=1), "start": 0, "end": 5}
    Fact.objects.create(conversation=made, state="kept", **said)
    for purpose in ("title", "result", "trial", "reply"):
        add_request(made, purpose)
    trial = made.model_calls.get(purpose="trial")
    reply = made.messages.get(seq=2)
    values = {"state": "done", "text": "Hi!", "model": "m", "call": trial}
    values |= {"asked": ["order"], "finished_at": timezone.now()}
    Trial.objects.create(conversation=made, message=reply, **values)
    return Conversation.objects.get(pk=made.pk)


def add_request(conversation, purpose):
    """Add a request of this purpose without a message: the one of the first reply."""
    call = conversation.model_calls.filter(purpose="reply").order_by("pk")[0]
    call.pk, call._state.adding, call.message = None, True, None
    call.purpose = purpose
    call.save()


@pytest.fixture
def alices(alice):
    return signed_in(alice)


def export(user):
    """The conversations as *Download everything* gives them."""
    rows = library.list_own(user).order_by("pk")
    found = [json.loads(dump_export(export_thread(row))) for row in rows]
    return {"format": 1, "account": {}, "conversations": found}


def compare(written, again):
    """Check that both are equal, except for the values of the copy."""
    for value in (written, again):
        for name in ("uuid", "created_at", "title_set_by"):
            value["conversation"].pop(name)
        for row in value["messages"]:
            del row["turn"], row["imported_at"]
        # These are the copy's own.
        for row in (*value["tool_calls"], *value["rules"], *value["facts"]):
            for name in ("created_at", "deadline_at"):
                row.pop(name, None)
        for row in value["facts"]:
            row["state"] = CHANGED["facts", "state"].get(row["state"], row["state"])
    for name in written:
        assert again[name] == written[name], name


def test_each_table_of_an_export_is_known_here():
    lists = {
        name
        for name in build_thread_state().model_fields
        if name not in ("format", "prompts", "left_out")
    }
    assert lists == TABLES.keys()


@pytest.mark.parametrize(("name", "field"), [*list_enumerations()])
def test_enumeration_of_the_file_is_that_of_the_model(name, field):
    _model, column = find_column(name, field)
    values = {value for value, _label in column.flatchoices}
    values |= {""} if column.blank else set()
    gone = {v for v, now in CHANGED.get((name, field), {}).items() if now is GONE}
    assert list_literals(row_of(name).model_fields[field].annotation) == values - gone


def test_conversation_with_all_tables_comes_back(talk, bob, alice, alices):
    send_long(talk, keep_long(bob, long_text(), pages=[0, 90_000]))
    answer(talk)
    written = export(bob)
    [value] = written["conversations"]
    assert [name for name in TABLES if not value[name]] == ["branches"]
    assert "1 conversation" in post(alices, written)
    [made] = library.list_own(alice)
    [again] = export(alice)["conversations"]
    compare(value, again)
    assert all(
        rebuilding.verify_context(call)
        for call in made.model_calls.filter(purpose__in=("reply", "trial"))
    )
    assert made.trials.get().call.purpose == "trial"


@pytest.mark.parametrize(("name", "field"), [*list_cases()])
def test_value_comes_back(talk, bob, alice, name, field):
    model, column = find_column(name, field)
    for value in list_values(column):
        if value in UNWRITTEN.get((name, field), ()):
            continue
        place = plant_value(talk, name, field, model, value)
        outcome = take(alice, export(bob))
        assert outcome.notices == [], (value, outcome.notices)
        [made] = outcome.imported
        [again] = export(alice)["conversations"]
        now = CHANGED.get((name, field), {}).get(value, value)
        if (name, field) in NOT_COPIED:
            now = None
        if now is GONE:
            assert again[name] == []
        else:
            row = again[name] if place is None else again[name][place]
            assert row[field] == json.loads(dump_export(now))
        library.erase_conversation(made)


def plant_value(conversation, name, field, model, value):
    """Give a row the value, past the code that guards it; the place of the row."""
    if name == "conversation":
        QuerySet(model).filter(pk=conversation.pk).update(**{field: value})
        return None
    rows = list(model.objects.filter(conversation=conversation).order_by("pk"))
    place = 0
    if name == "messages":
        # The first reply, or the question that has no file.
        role = "assistant" if field == "reasoning" else "user"
        fitting = [r for r in conversation.messages.order_by("seq") if r.role == role]
        seq = next(r.seq for r in fitting if not r.attachments)
        place = [r.seq for r in conversation.messages.order_by("seq")].index(seq)
        if model is Message:
            rows = [next(r for r in rows if r.seq == seq)]
        else:
            rows = [next(r for r in rows if r.user_message.seq == seq)]
    more = BESIDE.get((name, field), {}).get(value, {})
    row = rows[0]
    QuerySet(model).filter(pk=row.pk).update(**{field: value}, **more)
    return place
