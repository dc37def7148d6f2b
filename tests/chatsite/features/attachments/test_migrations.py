"""The table of uploads moves from the app `memory` to its own, as it stands."""

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from chatsite.features.attachments.models import FilePassage, Upload
from memory.search import recall
from memory.search.conversation_search import find_messages

from .long_files.scenes import keep_long, long_text, send_long
from .test_uploads import keep

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def migrate():
    """migrate(*targets) -> the models as they are then; without targets all of it."""

    def run(*targets):
        executor = MigrationExecutor(connection)
        targets = list(targets) or executor.loader.graph.leaf_nodes()
        return executor.migrate(targets).apps

    yield run
    run()


def test_an_upgrade_keeps_what_was_uploaded(migrate, alice):
    older = migrate(("attachments", None), ("memory", "0030_index_forms_of_words"))
    values = {"owner_id": alice.pk, "name": "a.txt", "size": 5, "tokens": 2}
    row = older.get_model("memory", "Upload").objects.create(**values, text="Hello")
    migrate()
    assert Upload.objects.get(pk=row.pk).text == "Hello"


def test_a_site_that_takes_the_app_out_keeps_no_row(migrate, alice):
    """The row would keep its owner from being deleted."""
    keep(alice)
    migrate(("attachments", None))
    migrate()
    assert not Upload.objects.exists()


def test_long_files_of_an_older_release_are_found_in_other_forms(migrate, conversation):
    text = long_text("Der Tresor von Zürich ist grün.")
    send_long(conversation, keep_long(conversation.owner, text))
    kept = FilePassage.objects.get(text__contains="Tresor")
    migrate(("attachments", "0004_upload_readings"))
    old = " ".join(recall.make_keys(kept.file_id, ["zürich"]))
    FilePassage.objects.filter(pk=kept.pk).update(terms=old)
    migrate()
    found = find_messages(conversation.owner, "zurich grun")
    assert [each.match for each in found] == ["Zürich"]
    assert FilePassage.objects.get(pk=kept.pk).terms == kept.terms
