"""Experiments are an app of their own, which has the table from here on; the actions of
the access log are those of all apps that are installed.
"""

from django.db import migrations, models

import chatsite.review.models


class Migration(migrations.Migration):
    dependencies = [("desk", "0004_experiment")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.DeleteModel("Experiment")]
        ),
        migrations.AlterField(
            model_name='accessevent',
            name='action',
            field=models.CharField(choices=chatsite.review.models.list_staff_actions, max_length=7, verbose_name='action'),
        ),
    ]
