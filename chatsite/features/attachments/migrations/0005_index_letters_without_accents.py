"""Index the passages of long files again, as the messages are: words without accents,
in one form of their letters, and by better stems.

In batches, each a transaction of its own. An interrupted run begins at the first row
again; only what has changed is written.
"""

from django.db import migrations, transaction

BATCH = 500
# Passages did not change before.
TRIGGER = """
    CREATE TRIGGER IF NOT EXISTS attachments_passage_changed
    AFTER UPDATE ON attachments_filepassage
    BEGIN
        INSERT INTO attachments_passage_fts (attachments_passage_fts, rowid, terms)
        VALUES ('delete', old.id, old.terms);
        INSERT INTO attachments_passage_fts (rowid, terms) VALUES (new.id, new.terms);
    END
"""


def follow_changes(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        schema_editor.execute(TRIGGER)


def index_again(apps, schema_editor):
    from memory.engine.search.terms import extract_terms
    from memory.search import recall

    passage = apps.get_model("attachments", "FilePassage")
    rows, last = passage.objects.order_by("pk"), 0
    while True:
        with transaction.atomic(schema_editor.connection.alias):
            batch = [*rows.filter(pk__gt=last).select_for_update()[:BATCH]]
            changed = []
            for row in batch:
                made = recall.make_keys(row.file_id, extract_terms(row.text))
                if (terms := " ".join(made)) != row.terms:
                    row.terms = terms
                    changed.append(row)
            passage.objects.bulk_update(changed, ["terms"])
        if len(batch) < BATCH:
            return
        last = batch[-1].pk


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('attachments', '0004_upload_readings'),
    ]

    operations = [
        migrations.RunPython(follow_changes, migrations.RunPython.noop),
        migrations.RunPython(index_again, migrations.RunPython.noop, elidable=True),
    ]
