"""Statements that are built once say what Django says of the same querysets."""

from datetime import UTC, datetime, timedelta
from threading import Thread
from uuid import UUID, uuid4

import pytest
from django.db import DataError, IntegrityError, connection, transaction
from django.db.models import DateTimeField, F, UUIDField
from django.db.models.functions import Now
from django.db.models.sql.compiler import SQLInsertCompiler

from memory import transcript
from memory.integrity.signatures import has_valid_signature
from memory.models import Conversation, Message, RecallEntry
from memory.sql import insert_row, prepared_rows, prepared_update

pytestmark = [pytest.mark.django_db, pytest.mark.postgresql]

LATER = datetime(2030, 1, 2, 3, 4, 5, 678, tzinfo=UTC)


@prepared_rows(uuid=UUIDField())
def with_owner(owner, uuid):
    rows = Conversation.objects.filter(owner=owner, uuid=uuid, deleted_at=None)
    return rows.select_related("owner").annotate(numbers=F("next_seq") - 1).order_by()


@prepared_rows()
def said(conversation, **edges):
    rows = Message.objects.filter(conversation=conversation).order_by("seq")
    if "before" in edges:
        rows = rows.filter(seq__lt=edges["before"])
    return rows.values_list("seq", "text", "tool_calls", "created_at")


@prepared_update()
def change(pk, **values):
    return Conversation.objects.filter(pk=pk), {**values, "updated_at": Now()}


@pytest.fixture
def conversation(alice):
    made = transcript.create_conversation(alice, title="The boats")
    for number, text in enumerate(("I'm Lance.", "How many boats?"), start=1):
        transcript.append_user_message(made, text=text, client_id=f"id-{number}")
    return made


def test_prepared_rows_are_objects_of_the_query(
    conversation, alice, django_assert_num_queries
):
    [found] = with_owner(owner=alice.pk, uuid=conversation.uuid)
    with django_assert_num_queries(0):
        assert (found, found.owner, found.title) == (conversation, alice, "The boats")
        assert found.uuid == conversation.uuid
        assert found.policy == {}
        assert not found._state.adding
    assert found.numbers == 4
    assert with_owner(owner=alice.pk, uuid=str(conversation.uuid)) == [conversation]
    assert with_owner(owner=alice.pk, uuid=uuid4()) == []
    assert with_owner(owner=alice.pk + 1, uuid=conversation.uuid) == []


def test_calls_have_their_own_arguments(conversation, bob):
    other = transcript.create_conversation(bob)
    wanted = list(said.build(conversation))
    assert said(conversation=conversation.pk) == wanted
    assert [row[1] for row in wanted] == ["I'm Lance.", "How many boats?"]
    assert said(conversation=conversation.pk, before=3) == wanted[:1]
    assert said(conversation=conversation.pk, before=1) == []
    assert said(conversation=other.pk) == []


def test_an_update_changes_the_rows_it_names(conversation, bob):
    other = transcript.create_conversation(bob)
    values = {"title": "New", "policy": {"keep": [1, "ü"]}, "compaction_due_at": LATER}
    before = conversation.updated_at
    assert change(pk=conversation.pk, **values) == 1
    conversation.refresh_from_db()
    assert {name: getattr(conversation, name) for name in values} == values
    assert conversation.updated_at > before
    assert change(pk=conversation.pk, compaction_due_at=None) == 1
    conversation.refresh_from_db()
    assert conversation.compaction_due_at is None
    assert conversation.title == "New"
    other.refresh_from_db()
    assert other.title == ""
    assert change(pk=-1, title="") == 0


def make_message(conversation, seq, **values):
    return Message(conversation=conversation, seq=seq, role="user", tokens=1, **values)


def test_inserted_rows_are_those_that_django_saves(conversation):
    values = {"text": "100 %s", "tool_calls": [{"ü": 1}], "pinned_at": LATER}
    saved = make_message(conversation, 10, **values)
    saved.save()
    row = make_message(conversation, 11, **values)
    assert insert_row(row) is row
    assert not row._state.adding
    stored = Message.objects.get(pk=row.pk)
    assert has_valid_signature(stored)
    own = {"id", "seq", "created_at", "signature"}
    for field in {each.attname for each in Message._meta.fields} - own:
        assert getattr(stored, field) == getattr(saved, field), field
    assert stored.created_at == row.created_at


def test_inserted_expressions_are_those_of_their_call(conversation):
    first, second = (
        insert_row(make_message(conversation, seq, pinned_at=Now() + delta))
        for seq, delta in ((10, timedelta(0)), (11, timedelta(days=1)))
    )
    pinned = Message.objects.in_bulk([first.pk, second.pk])
    assert pinned[second.pk].pinned_at - pinned[first.pk].pinned_at > timedelta(hours=1)


def test_an_insert_can_change_the_row_with_its_key(conversation):
    row = conversation.messages.get(seq=1).recall_entry
    row.terms, row.seq = "other words", 77
    for update in ("terms",), ("terms", "seq"):
        insert_row(row, update=update)
        stored = RecallEntry.objects.get(pk=row.pk)
        assert stored.terms == "other words"
        assert (stored.seq == 77) == ("seq" in update)
    with pytest.raises(IntegrityError), transaction.atomic():
        insert_row(row)


def test_an_insert_is_compiled_once(conversation, monkeypatch):
    insert_row(make_message(conversation, 10))
    monkeypatch.delattr(SQLInsertCompiler, "as_sql")
    insert_row(make_message(conversation, 11, text="Another"))
    with pytest.raises(DataError):
        insert_row(make_message(conversation, 12, text="NUL \0"))


def test_a_value_is_converted_where_it_is_compared(conversation):
    @prepared_rows(end=DateTimeField())
    def older(end):
        return Conversation.objects.filter(created_at__lt=end)

    made = conversation.created_at
    assert older(end=made) == []
    assert older(end=made + timedelta(microseconds=1)) == [conversation]


def test_statement_is_built_once_and_after_a_setting_has_changed(
    conversation, settings
):
    built = []

    @prepared_rows()
    def few(owner):
        built.append(settings.TURNS_PER_USER)
        return Conversation.objects.filter(owner=owner)[: settings.TURNS_PER_USER]

    settings.TURNS_PER_USER = 1
    for _ in range(3):
        assert len(few(owner=conversation.owner_id)) == 1
    assert built == [1]
    settings.TURNS_PER_USER = 2
    transcript.create_conversation(conversation.owner)
    assert len(few(owner=conversation.owner_id)) == 2
    assert built == [1, 2]


@pytest.mark.django_db(transaction=True)
def test_threads_use_their_own_connections(conversation, alice):
    found = []

    def read():
        try:
            found.append(with_owner(owner=alice.pk, uuid=conversation.uuid))
        finally:
            connection.close()

    with transaction.atomic():
        # Not committed: another connection does not see it.
        Conversation.objects.filter(pk=conversation.pk).update(title="Mine")
        assert with_owner(owner=alice.pk, uuid=conversation.uuid)[0].title == "Mine"
        thread = Thread(target=read)
        thread.start()
        thread.join()
    assert found[0][0].title == "The boats"


def test_wrong_arguments_and_values_are_errors(conversation):
    with pytest.raises(TypeError, match="uuid"):
        with_owner(owner=1)
    with pytest.raises(TypeError, match="nobody"):
        with_owner(owner=1, uuid=UUID(int=0), nobody=2)
    with pytest.raises(DataError):
        change(pk=conversation.pk, title="NUL \0")


def test_history_columns_cannot_be_updated(conversation):
    @prepared_update()
    def rewrite(pk, text):
        return Message.objects.filter(pk=pk), {"text": text}

    with pytest.raises(TypeError, match="append-only"):
        rewrite(pk=conversation.messages.first().pk, text="Other words")


def test_a_refused_update_ends_the_transaction(conversation, alice):
    other = transcript.create_conversation(alice)

    @prepared_update()
    def take(pk, uuid):
        return Conversation.objects.filter(pk=pk), {"uuid": uuid}

    with transaction.atomic(savepoint=False):
        with pytest.raises(IntegrityError):
            take(pk=other.pk, uuid=conversation.uuid)
        with pytest.raises(transaction.TransactionManagementError):
            Conversation.objects.count()
        transaction.set_rollback(False)
