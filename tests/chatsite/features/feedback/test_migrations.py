"""The table of feedback moves from the app `chat` to its own, as it stands."""

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from chatsite.features.feedback.models import Feedback
from chatsite.features.feedback.services import give_feedback

pytestmark = pytest.mark.django_db(transaction=True)


def migrate(*targets):
    executor = MigrationExecutor(connection)
    return executor.migrate(list(targets)).apps


@pytest.fixture
def back_again():
    yield
    migrate(*MigrationExecutor(connection).loader.graph.leaf_nodes())
    ContentType.objects.clear_cache()


def test_an_upgrade_keeps_rows_and_what_was_logged_of_them(back_again, conversation):
    migrate(("feedback", None))
    apps = migrate(("chat", "0023_forget_deleted_calls"))
    values = {"conversation_id": conversation.pk, "verdict": "bad", "comment": "No."}
    reply = conversation.messages.get(seq=2)
    row = apps.get_model("chat", "Feedback").objects.create(
        message_id=reply.pk, **values
    )
    kind, _ = ContentType.objects.get_or_create(app_label="chat", model="feedback")
    values = {"user_id": conversation.owner_id, "object_id": row.pk}
    logged = LogEntry.objects.create(content_type=kind, action_flag=CHANGE, **values)
    migrate(*MigrationExecutor(connection).loader.graph.leaf_nodes())
    ContentType.objects.clear_cache()
    assert Feedback.objects.get().comment == "No."
    logged.refresh_from_db()
    assert logged.content_type.model_class() is Feedback
    assert logged.get_edited_object() == Feedback.objects.get()


def test_a_site_that_takes_the_app_out_keeps_no_row(back_again, conversation):
    """The row would keep its message, and the conversation, from being deleted."""
    give_feedback(conversation, 2, "bad")
    migrate(("feedback", None))
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM chat_feedback")
        assert cursor.fetchone() == (0,)
