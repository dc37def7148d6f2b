"""The table of rules moves from the app `memory` to its own, as it stands."""

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from chatsite.features.rules.models import Rule
from memory import transcript

from .scenes import state_rule

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def migrate():
    """migrate(*targets) -> the models as they are then; without targets all of it."""

    def run(*targets):
        executor = MigrationExecutor(connection)
        targets = list(targets) or executor.loader.graph.leaf_nodes()
        ContentType.objects.clear_cache()
        return executor.migrate(targets).apps

    yield run
    run()


@pytest.fixture
def chat(alice):
    return transcript.create_conversation(alice)


def test_an_upgrade_keeps_rules_and_what_was_logged_of_them(migrate, chat):
    older = migrate(("rules", None), ("memory", "0031_move_uploads"))
    values = {"conversation_id": chat.pk, "state": "confirmed", "text": "Be brief."}
    row = older.get_model("memory", "Rule").objects.create(**values)
    kind, _ = ContentType.objects.get_or_create(app_label="memory", model="rule")
    values = {"user_id": chat.owner_id, "object_id": row.pk, "content_type": kind}
    logged = LogEntry.objects.create(**values, action_flag=CHANGE)
    migrate()
    assert Rule.objects.get().text == "Be brief."
    logged.refresh_from_db()
    assert logged.get_edited_object() == Rule.objects.get()


def test_a_site_that_takes_the_app_out_keeps_no_rule(migrate, chat):
    state_rule(chat, "Always answer in French.")
    assert chat.rule_count == 1
    migrate(("rules", None))
    chat.refresh_from_db()
    assert chat.rule_count == 0
    migrate()
    assert not Rule.objects.exists()
