"""The search index over the transcript, and an entry for every message there is.

A later migration that makes SQLite rebuild the table memory_recallentry has to make
the triggers again: they go with the old table.
"""

from itertools import islice

import django.db.models.deletion
from django.db import migrations, models

SQLITE = (
    """
    CREATE VIRTUAL TABLE memory_recall_fts USING fts5(
        terms, dates, content='memory_recallentry', content_rowid='message_id',
        tokenize='ascii', detail='none', columnsize=0
    )
    """,
    """
    CREATE TRIGGER memory_recall_added AFTER INSERT ON memory_recallentry BEGIN
        INSERT INTO memory_recall_fts (rowid, terms, dates)
        VALUES (new.message_id, new.terms, new.dates);
    END
    """,
    """
    CREATE TRIGGER memory_recall_removed AFTER DELETE ON memory_recallentry BEGIN
        INSERT INTO memory_recall_fts (memory_recall_fts, rowid, terms, dates)
        VALUES ('delete', old.message_id, old.terms, old.dates);
    END
    """,
    """
    CREATE TRIGGER memory_recall_changed AFTER UPDATE ON memory_recallentry BEGIN
        INSERT INTO memory_recall_fts (memory_recall_fts, rowid, terms, dates)
        VALUES ('delete', old.message_id, old.terms, old.dates);
        INSERT INTO memory_recall_fts (rowid, terms, dates)
        VALUES (new.message_id, new.terms, new.dates);
    END
    """,
)
POSTGRESQL = (
    """
    CREATE INDEX memory_recall_gin ON memory_recallentry
    USING gin (to_tsvector('simple', terms || ' ' || dates))
    WITH (fastupdate = off)
    """,
)
MAKE = {"sqlite": SQLITE, "postgresql": POSTGRESQL}
# Triggers and indexes go with the table.
DROP = {"sqlite": ("DROP TABLE memory_recall_fts",), "postgresql": ()}


def make_index(apps, schema_editor):
    for statement in MAKE[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


def drop_index(apps, schema_editor):
    for statement in DROP[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


def fill_index(apps, schema_editor):
    from memory.search import recall

    entry = apps.get_model("memory", "RecallEntry")
    rows = apps.get_model("memory", "Message").objects.order_by("pk")
    names = {field.attname for field in entry._meta.get_fields()}
    entries = (
        entry(**{name: value for name, value in recall.describe_entry(row).items() if name in names})
        for row in rows.iterator(chunk_size=500)
    )
    while batch := [*islice(entries, 500)]:
        entry.objects.bulk_create(batch)


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='RecallEntry',
            fields=[
                ('message', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='recall_entry', serialize=False, to='memory.message')),
                ('seq', models.PositiveIntegerField()),
                ('terms', models.TextField(blank=True)),
                ('dates', models.TextField(blank=True)),
            ],
        ),
        migrations.RunPython(make_index, drop_index),
        migrations.RunPython(fill_index, migrations.RunPython.noop),
    ]
