"""Where a message of the search index stands, without reading its entry.

SQLite keeps little in memory: to find the numbers of some hundred messages it would
read as many pages, each with the words of ten messages.
"""

from django.db import migrations


def make_index(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        schema_editor.execute(
            "CREATE INDEX memory_recall_place ON memory_recallentry (message_id, seq)"
        )


def drop_index(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        schema_editor.execute("DROP INDEX memory_recall_place")


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0003_library'),
    ]

    operations = [
        migrations.RunPython(make_index, drop_index),
    ]
