"""History can be added to and read; nothing that the site's code offers changes it."""

import pytest
from django.core.exceptions import FieldDoesNotExist
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.db.models import F, Value
from django.db.models.functions import Now

from chatsite.accounts import account
from chatsite.review.actions import erasing
from chatsite.review.models import AccessEvent, Review, Tombstone
from chatsite.turns.copying import copies
from memory import actions, transcript
from memory.models import Message, ModelCall, Prompt, Summary
from tests.memory.scenes import summarise, talk
from tests.servers import ROOT

pytestmark = pytest.mark.django_db

MODELS = (Message, Summary, ModelCall, Prompt, AccessEvent, Review, Tombstone)
FIXED = {
    Message: "text",
    Summary: "text",
    ModelCall: "sha256",
    Prompt: "text",
    AccessEvent: "target",
    Review: "note",
    Tombstone: "reason",
}


@pytest.fixture
def conversation(alice):
    made = transcript.create_conversation(alice)
    talk(made, 2)
    summarise(made, 1, 2)
    AccessEvent.objects.create(username="x", action="view", conversation=made.uuid)
    seen = {"version": 1, "last_seq": 4, "memory_version": 0}
    Review.objects.create(conversation=made, username="x", **seen)
    counts = dict.fromkeys(("messages", "summaries", "model_calls", "turns"), 1)
    Tombstone.objects.create(
        conversation=made.uuid, begun_at=made.created_at, sha256="0" * 64, **counts
    )
    return made


REFUSED = (TypeError, IntegrityError, FieldDoesNotExist)


def states():
    return {model: list(model.objects.order_by("pk").values_list()) for model in MODELS}


CHANGES = {
    "update": lambda rows, name: rows.update(**{name: "x"}),
    "update by expression": lambda rows, name: rows.update(**{name: Value("x")}),
    "update of the key": lambda rows, name: rows.update(pk=F("pk")),
    "delete": lambda rows, name: rows.delete(),
    "delete of one": lambda rows, name: rows.first().delete(),
    "save": lambda rows, name: rows.first().save(),
    "save of a column": lambda rows, name: rows.first().save(update_fields=[name]),
    "save over": lambda rows, name: copy_of(rows.first()).save(),
    "bulk update": lambda rows, name: rows.bulk_update(list(rows), [name]),
    "upsert": lambda rows, name: rows.bulk_create(
        list(rows), update_conflicts=True, unique_fields=["pk"], update_fields=[name]
    ),
    "update or create": lambda rows, name: rows.model.objects.update_or_create(
        pk=rows.first().pk, defaults={name: "x"}
    ),
}


def copy_of(row):
    """Return an equal row, built by code that knows its key."""
    names = [field.attname for field in row._meta.concrete_fields]
    return type(row)(**{name: getattr(row, name) for name in names})


@pytest.mark.parametrize("model", MODELS)
def test_rows_of_history_cannot_be_changed(conversation, model):
    before = states()
    for change in CHANGES.values():
        with pytest.raises(REFUSED), transaction.atomic():
            change(model.objects.all(), FIXED[model])
    assert states() == before


async def test_rows_of_history_cannot_be_changed_from_async_code():
    for model, name in FIXED.items():
        with pytest.raises(TypeError):
            await model.objects.aupdate(**{name: "x"})
        with pytest.raises(TypeError):
            await model.objects.all().adelete()


def test_the_rows_of_a_conversation_are_guarded_too(conversation):
    for rows in (conversation.messages, conversation.summaries, conversation.reviews):
        with pytest.raises(TypeError):
            rows.all().delete()
    with pytest.raises(TypeError):
        conversation.messages.update(text="x")


def test_results_of_a_request_are_never_detached_from_it(conversation):
    reply = conversation.messages.get(seq=2)
    with pytest.raises(TypeError, match="what it made"):
        reply.model_calls.update(message=None)
    with pytest.raises(TypeError, match="what it made"):
        reply.model_calls.clear()


def test_a_text_is_only_ever_erased_whole(conversation):
    half = {"text": "", "tool_calls": [], "tokens": 0}
    for values in (half, {"deleted_at": Now()}, {**half, "text": "x"}):
        with pytest.raises(TypeError):
            conversation.messages.update(**values)
    actions.delete_message(conversation, 1)
    assert conversation.messages.get(seq=1).text == ""


def test_rows_go_with_their_conversation_and_people_by_themselves(
    conversation, bob, alice
):
    seen = {"version": 1, "last_seq": 4, "memory_version": 0}
    Review.objects.create(conversation=conversation, user=bob, username="bob", **seen)
    bob.delete()
    assert Review.objects.latest("pk").user is None
    alice.delete()
    left = {model for model, rows in states().items() if rows}
    assert left == {AccessEvent, Tombstone, Prompt}


@pytest.fixture
def triggers():
    """The triggers of deploy/history.sql."""
    run((ROOT / "deploy" / "history.sql").read_text())


CHANGES_BY_HAND = (
    "UPDATE memory_message SET text = 'x' WHERE seq = 1",
    "UPDATE memory_summary SET text = 'x'",
    "UPDATE memory_modelcall SET refs = '{}'",
    "UPDATE memory_prompt SET text = 'x'",
    "UPDATE desk_accessevent SET target = 'x'",
    "UPDATE desk_review SET note = 'x'",
    "UPDATE desk_tombstone SET reason = 'x'",
    "DELETE FROM memory_recallentry; DELETE FROM memory_modelcall; "
    "DELETE FROM memory_message",
    "DELETE FROM memory_modelcall; DELETE FROM memory_summary",
    "DELETE FROM desk_review",
    "DELETE FROM desk_accessevent",
    "DELETE FROM desk_tombstone",
)


@pytest.mark.database("postgresql")
def test_the_documented_triggers_keep_sql_out(conversation, triggers):
    for change in CHANGES_BY_HAND:
        with pytest.raises(DatabaseError, match="are history"), transaction.atomic():
            run(change, "SET CONSTRAINTS ALL IMMEDIATE")


def run(*statements):
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@pytest.mark.database("postgresql")
def test_the_documented_triggers_allow_what_the_site_does(
    conversation, triggers, alice
):
    actions.pin_message(conversation, 1)
    actions.delete_message(conversation, 1)
    actions.rebuild_memory(conversation)
    branch = copies.branch_conversation(conversation, 4)
    talk(conversation, 2)
    summarise(conversation, 1, 4)
    erasing.erase_with_tombstone(branch, user=alice, reason="x")
    account.delete_account(alice)
    run("SET CONSTRAINTS ALL IMMEDIATE")
    assert not Message.objects.exists()
    assert Tombstone.objects.count() == 2
