"""The table stays; the app of organisations has it now, where it is on."""

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('signin', '0003_rechecks'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.DeleteModel(name='Membership')],
        ),
    ]
