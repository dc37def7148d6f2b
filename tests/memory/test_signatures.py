"""Changes in plain SQL, past the site, are found: also in rows without a reply."""

import pytest
from django.core.management import call_command
from django.db import connection

from memory import actions, transcript, versions
from memory.integrity import audit, signatures
from memory.models import Message, ModelCall, Summary
from tests.remembered import remembered

from .scenes import say, summarise, talk

Status = Summary.Status


@pytest.fixture
@remembered
def conversation(alice):
    """v1 was merged into v2; message #9 and v3 were never sent to a model."""
    made = transcript.create_conversation(alice, title="Signed")
    talk(made, 4)
    first = summarise(made, 1, 4)
    merged = summarise(made, 1, 6, replaces=[first], flags={"unsupported": ["Kafka"]})
    transcript.append_user_message(made, text="Not sent", client_id="new")
    summarise(made, 7, 8, trigger={"kind": "fraction", "value": 0.9, "limit": 1.0})
    assert merged.unsupported == 1
    return made


def found():
    return {violation.code: violation.detail for violation in audit.check_memory()}


def run(statement, *values):
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        assert cursor.rowcount == 1


def test_audit_finds_nothing_in_unchanged_rows(conversation):
    assert found() == {}


@pytest.mark.parametrize(
    "change",
    [
        "text = 'Not send'",
        "role = 'assistant'",
        "tool_call_id = 'forged'",
        "created_at = '2020-01-01 00:00:00+00:00'",
        "signature = NULL",
        "text = '', deleted_at = '2026-01-01 00:00:00+00:00'",
        "seq = 10",
    ],
)
def test_audit_finds_a_changed_message_that_no_reply_has_used(conversation, change):
    newest = conversation.messages.last()
    run(f"UPDATE memory_message SET {change} WHERE id = %s", newest.pk)  # noqa: S608
    assert "message #" in found()["signature.message"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("text = 'They agreed.'", "signature.summary"),
        ("last_seq = 9", "signature.summary"),
        ("generation = 1, level = 2", "signature.summary"),
        ('trigger = \'{"kind": "edit"}\'', "signature.summary"),
        ("created_at = '2020-01-01 00:00:00+00:00'", "signature.summary"),
        ("status = 'superseded'", "signature.status"),
        ("status = 'stale'", "signature.status"),
    ],
)
def test_audit_finds_a_changed_summary_that_no_reply_has_used(
    conversation, change, code
):
    statement = f"UPDATE memory_summary SET {change} WHERE version = 3"  # noqa: S608
    with connection.cursor() as cursor:
        # "trigger" is a word of SQL.
        cursor.execute(statement.replace("trigger =", '"trigger" ='))
    assert "v3" in found()[code]


def test_audit_finds_removed_flags(conversation):
    run("UPDATE memory_summary SET flags = '{}' WHERE version = 2")
    assert "v2" in found()["signature.summary"]


def test_audit_finds_a_changed_reference_with_a_matching_hash(conversation):
    call = conversation.model_calls.filter(purpose="reply").last()
    other = conversation.model_calls.filter(purpose="reply").first()
    values = [connection.ops.adapt_json_value(other.refs, None), other.sha256, call.pk]
    run("UPDATE memory_modelcall SET refs = %s, sha256 = %s WHERE id = %s", *values)
    assert set(found()) == {"signature.call"}


def test_audit_finds_a_removed_version(conversation):
    second = conversation.summaries.get(version=2)
    with connection.cursor() as cursor:
        for table, column in (
            ("memory_modelcall", "summary_id"),
            ("memory_summary_folded_from", "from_summary_id"),
            ("memory_summary", "id"),
        ):
            cursor.execute(f"DELETE FROM {table} WHERE {column} = %s", [second.pk])  # noqa: S608
    assert found()["R7.missing"] == "there is no version before v3"


def test_audit_names_some_of_many_rows_and_counts_the_others(conversation):
    talk(conversation, 4)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE memory_message SET text = 'x'")
    detail = found()["signature.message"]
    assert detail.startswith("not as it was written: message #1, message #2, ")
    assert detail.endswith("message #11 and 7 more")


def test_a_message_deleted_by_its_owner_is_signed_as_deleted(conversation):
    actions.delete_message(conversation, 3)
    assert found() == {}
    run("UPDATE memory_message SET text = 'Forged' WHERE seq = 3")
    assert "signature.message" in found()


def test_status_changes_are_always_signed(conversation, alice):
    conversation.refresh_from_db()
    actions.rewrite_summary(conversation, 2, "In other words.", author=alice)
    actions.restore_version(conversation, 2, author=alice)
    actions.exclude_messages(conversation, [8])
    versions.retract_to(conversation, 1)
    say(conversation, "on")
    row = conversation.summaries.last()
    row.status = Status.STALE
    row.save(update_fields=["status"])
    assert "signature.status" not in found()


def test_new_status_does_not_vouch_for_a_changed_text(conversation):
    run("UPDATE memory_summary SET text = 'Forged' WHERE version = 3")
    versions.retract_to(conversation, 1)
    assert set(found()) == {"signature.summary"}


def test_signature_made_without_the_key_is_invalid(conversation, settings):
    newest = conversation.messages.last()
    settings.SIGNING_KEY = "guessed"
    newest.text = "Forged"
    signatures.renew_signature(newest)
    run("UPDATE memory_message SET text = 'Forged' WHERE id = %s", newest.pk)
    settings.SIGNING_KEY = ""
    assert set(found()) == {"signature.message"}


def test_old_secret_key_works_as_the_signing_key(conversation, settings):
    settings.SIGNING_KEY, settings.SECRET_KEY = settings.SECRET_KEY, "rotated"
    assert found() == {}


@pytest.mark.parametrize("model", [Message, Summary, ModelCall])
def test_rows_without_a_signature_get_one(conversation, model):
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {model._meta.db_table} SET signature = NULL")  # noqa: S608
    assert signatures.sign_all(model) == model.objects.count()
    assert signatures.sign_all(model) == 0
    assert found() == {}


def test_new_key_requires_signing_again(conversation, settings, capsys):
    settings.SIGNING_KEY = "another"
    assert set(found()) == {
        f"signature.{n}" for n in ("message", "summary", "status", "call")
    }
    call_command("sign_history")
    assert len(found()) == 4
    call_command("sign_history", again=True)
    assert found() == {}
    assert "Signed 0 rows." in capsys.readouterr().out
