"""The table of links moves from the app `chat` to its own, as it stands."""

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from chatsite.features.sharing.models import Share
from chatsite.features.sharing.services import create_share, find_share

pytestmark = pytest.mark.django_db(transaction=True)


def migrate(*targets):
    executor = MigrationExecutor(connection)
    return executor.migrate(list(targets)).apps


@pytest.fixture
def back_again():
    yield
    migrate(*MigrationExecutor(connection).loader.graph.leaf_nodes())
    ContentType.objects.clear_cache()


def test_an_upgrade_keeps_links_open(back_again, conversation):
    ends = create_share(conversation).expires_at
    migrate(("sharing", None))
    apps = migrate(("chat", "0025_unread_reminders"))
    old = apps.get_model("chat", "Share").objects
    assert not old.exists(), "without the app nothing would delete them"
    values = {"conversation_id": conversation.pk, "expires_at": ends}
    old.create(token="t" * 32, last_seq=2, **values)
    ContentType.objects.get_or_create(app_label="chat", model="share")
    migrate(*MigrationExecutor(connection).loader.graph.leaf_nodes())
    assert find_share("t" * 32).last_seq == 2
    [kind] = ContentType.objects.filter(model="share")
    assert kind.model_class() is Share
