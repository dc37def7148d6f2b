"""Long messages are searched by passages; the next migration indexes what there is.

A column that may be NULL is added in place: where SQLite copies the table, it loses the
triggers of the index.
"""

from django.db import migrations, models

COLUMNS = "message_id, seq"


def make_place(apps, schema_editor):
    change_place(schema_editor, f"{COLUMNS}, passages")


def make_old_place(apps, schema_editor):
    change_place(schema_editor, COLUMNS)


def change_place(schema_editor, columns):
    """All that a search reads of a message that it does not look at."""
    if schema_editor.connection.vendor == "sqlite":
        schema_editor.execute("DROP INDEX memory_recall_place")
        schema_editor.execute(
            f"CREATE INDEX memory_recall_place ON memory_recallentry ({columns})"
        )


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0017_late_results'),
    ]

    operations = [
        migrations.AddField(
            model_name='recallentry',
            name='passages',
            field=models.PositiveIntegerField(null=True),
        ),
        migrations.RunPython(make_place, make_old_place),
    ]
