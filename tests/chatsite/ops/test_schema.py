"""A process starts on a database that is as new as it, or newer, and waits for one that
does not answer."""

import pytest
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder

from chatsite.ops import schema

pytestmark = pytest.mark.django_db


def test_process_starts_where_nothing_is_missing():
    assert schema.find_missing_migrations() == []
    schema.refuse_older_schema()


def test_process_names_a_missing_migration():
    recorder = MigrationRecorder(connection)
    recorder.record_unapplied("chat", "0021_feedback")
    recorder.record_unapplied("memory", "0001_initial")
    with pytest.raises(SystemExit) as ended:
        schema.refuse_older_schema()
    assert "lacks memory.0001_initial and 1 more. Run manage.py migrate" in str(
        ended.value
    )


def test_a_newer_database_serves():
    MigrationRecorder(connection).record_applied("chat", "9999_of_the_next_release")
    schema.refuse_older_schema()


def test_a_database_that_does_not_answer_is_waited_for(monkeypatch):
    def fail(recorder):
        raise OperationalError("connection refused")

    monkeypatch.setattr(MigrationRecorder, "applied_migrations", fail)
    schema.refuse_older_schema()
