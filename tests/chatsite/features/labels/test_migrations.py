"""The tables of labels move from the app `memory` to their own, as they stand."""

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from chatsite.features.labels.models import Label
from chatsite.features.labels.services import find_or_make_labels, give_labels
from memory import transcript

pytestmark = pytest.mark.django_db(transaction=True)


def migrate(*targets):
    executor = MigrationExecutor(connection)
    return executor.migrate(list(targets)).apps


@pytest.fixture
def back_again():
    yield
    migrate(*MigrationExecutor(connection).loader.graph.leaf_nodes())
    ContentType.objects.clear_cache()


def test_an_upgrade_keeps_labels_and_what_has_them(back_again, alice):
    talk = transcript.create_conversation(alice)
    give_labels(find_or_make_labels(alice, ["Gone"]), [talk])
    migrate(("labels", None))
    apps = migrate(("memory", "0031_move_uploads"))
    old = apps.get_model("memory", "Label").objects
    assert not old.exists(), "without the app nothing would delete them"
    old.create(owner_id=alice.pk, name="Work", key="work").conversations.add(talk.pk)
    ContentType.objects.get_or_create(app_label="memory", model="label")
    migrate(*MigrationExecutor(connection).loader.graph.leaf_nodes())
    assert Label.objects.get().conversations.get() == talk
    [kind] = ContentType.objects.filter(model="label")
    assert kind.model_class() is Label
