"""Long files, their passages, and the databases' text index over these.

A later migration that makes SQLite rebuild the table attachments_filepassage has to
make the triggers again: they go with the old table.
"""

import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

SQLITE = (
    """
    CREATE VIRTUAL TABLE attachments_passage_fts USING fts5(
        terms, content='attachments_filepassage', content_rowid='id',
        tokenize='ascii', detail='none', columnsize=0
    )
    """,
    """
    CREATE TRIGGER attachments_passage_added AFTER INSERT ON attachments_filepassage
    BEGIN
        INSERT INTO attachments_passage_fts (rowid, terms) VALUES (new.id, new.terms);
    END
    """,
    """
    CREATE TRIGGER attachments_passage_removed AFTER DELETE ON attachments_filepassage
    BEGIN
        INSERT INTO attachments_passage_fts (attachments_passage_fts, rowid, terms)
        VALUES ('delete', old.id, old.terms);
    END
    """,
)
POSTGRESQL = (
    """
    CREATE INDEX attachments_passage_gin ON attachments_filepassage
    USING gin (to_tsvector('simple', terms)) WITH (fastupdate = off)
    """,
)
MAKE = {"sqlite": SQLITE, "postgresql": POSTGRESQL}
# Triggers and indexes go with the table.
DROP = {"sqlite": ("DROP TABLE attachments_passage_fts",), "postgresql": ()}


def make_index(apps, schema_editor):
    for statement in MAKE[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


def drop_index(apps, schema_editor):
    for statement in DROP[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


class Migration(migrations.Migration):

    dependencies = [
        ('attachments', '0002_images'),
        ('memory', '0037_long_files'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='upload',
            name='long',
            field=models.JSONField(blank=True, null=True),
        ),
        migrations.CreateModel(
            name='LongFile',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('sha256', models.CharField(max_length=64)),
                ('chars', models.PositiveIntegerField()),
                ('is_whole', models.BooleanField(default=False)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='long_files', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'long file',
                'verbose_name_plural': 'long files',
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='FilePassage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('start', models.PositiveIntegerField()),
                ('end', models.PositiveIntegerField()),
                ('page', models.PositiveIntegerField(null=True)),
                ('text', models.TextField()),
                ('terms', models.TextField()),
                ('file', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='passages', to='attachments.longfile')),
            ],
            options={
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(fields=('file', 'number'), name='file_passage_number')],
            },
        ),
        migrations.CreateModel(
            name='LongFileUse',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('conversation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='long_file_uses', to='memory.conversation')),
                ('file', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='uses', to='attachments.longfile')),
                ('message', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='long_file_uses', to='memory.message')),
            ],
            options={
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(fields=('message', 'file'), name='long_file_of_message')],
            },
        ),
        migrations.RunPython(make_index, drop_index),
    ]
