"""Rows of experiments, and what Django's own log says of them: moved, and erased."""

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from chatsite.contrib.lab.experiments.models import Experiment

pytestmark = pytest.mark.django_db(transaction=True)
BEFORE = ("desk", "0004_experiment")


@pytest.fixture
def migrate():
    """migrate(*targets) -> the models as they are then; without targets all of it."""

    def run(*targets):
        executor = MigrationExecutor(connection)
        targets = list(targets) or executor.loader.graph.leaf_nodes()
        return executor.migrate(targets).apps

    yield run
    run()


def make(model, conversation, staff):
    values = {"conversation_id": conversation.pk, "user_id": staff.pk}
    return model.objects.create(**values, budget=1, last_seq=1, result={"a": "b"})


def log(row, kind, staff):
    values = {"object_id": str(row.pk), "object_repr": "one", "action_flag": CHANGE}
    return LogEntry.objects.create(user=staff, content_type_id=kind.pk, **values)


def test_migration_takes_over_rows_of_the_review_app(migrate, conversation, staff):
    older = migrate(("experiments", None), BEFORE)
    kind = ContentType.objects.get(app_label="desk", model="experiment")
    row = make(older.get_model("desk", "Experiment"), conversation, staff)
    entry = log(row, kind, staff)
    migrate()
    found = LogEntry.objects.get(pk=entry.pk)
    kind = ContentType.objects.get(pk=found.content_type_id)
    assert (kind.app_label, kind.model) == ("experiments", "experiment")
    assert Experiment.objects.get(pk=row.pk).result == {"a": "b"}


def test_reverse_migration_deletes_all_rows(migrate, conversation, staff):
    make(Experiment, conversation, staff)
    migrate(("experiments", None))
    migrate()
    assert not Experiment.objects.exists()


def test_the_log_of_one_goes_with_its_conversation(conversation, staff):
    row = make(Experiment, conversation, staff)
    log(row, ContentType.objects.get_for_model(row), staff)
    conversation.delete()
    assert not LogEntry.objects.exists()
