"""The table stays; the app of organisations has it now, where it is on."""

from django.apps import apps
from django.db import migrations
from django.db.migrations.recorder import MigrationRecorder


def forget_organisation(_, schema_editor):
    """Migrated back without the app of organisations: its migration, which depends on
    this one, has to be run again, too, or no site with both would start."""
    if not apps.is_installed('chatsite.contrib.organisation'):
        recorder = MigrationRecorder(schema_editor.connection)
        recorder.record_unapplied('organisation', '0001_initial')


class Migration(migrations.Migration):

    dependencies = [
        ('signin', '0003_rechecks'),
    ]

    operations = [
        migrations.RunPython(migrations.RunPython.noop, forget_organisation),
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.DeleteModel(name='Membership')],
        ),
    ]
