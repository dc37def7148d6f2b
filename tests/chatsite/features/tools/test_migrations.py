"""The tables of tools move from the app `chat` to their own, as they stand."""

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from chatsite.features.tools.models import ResultFile, ToolCall
from memory.models import Message

from ...scenes import Use, use_tools

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
    migrate(("tools", None))
    apps = migrate(("chat", "0025_unread_reminders"))
    reply = conversation.messages.get(seq=2)
    values = {"conversation_id": conversation.pk, "message_id": reply.pk}
    old = apps.get_model("chat", "ResultFile")
    old.objects.create(place=0, name="plan.pdf", data=b"%PDF", **values)
    kinds = ContentType.objects
    kind, _ = kinds.get_or_create(app_label="chat", model="resultfile")
    migrate(*MigrationExecutor(connection).loader.graph.leaf_nodes())
    ContentType.objects.clear_cache()
    assert bytes(ResultFile.objects.get().data) == b"%PDF"
    assert ContentType.objects.get(pk=kind.pk).model_class() is ResultFile


def test_a_site_that_takes_the_app_out_keeps_no_row(back_again, conversation):
    """The row would keep its message, and the conversation, from being deleted."""
    use_tools(conversation, "What is 1+1?", Use("calculate", {"expression": "1+1"}))
    assert ToolCall.objects.exists()
    migrate(("tools", None))
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM chat_toolcall")
        assert cursor.fetchone() == (0,)
    assert Message.objects.filter(role="tool").exists()
