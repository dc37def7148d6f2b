"""An index of the unfinished turns, by conversation, in place of one of all turns.

The longer a conversation is, the more finished turns there are to skip.
"""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chat", "0018_preferred_rules")]

    operations = [
        # On PostgreSQL the field's index goes with every other one of its column that
        # is no index of the model, so also with that of this constraint.
        migrations.RemoveConstraint(model_name="turn", name="one_running_turn"),
        migrations.AlterField(
            model_name="turn",
            name="conversation",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="turns",
                to="memory.conversation",
            ),
        ),
        migrations.AddConstraint(
            model_name="turn",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", "running")),
                fields=["conversation"],
                name="one_running_turn",
            ),
        ),
        migrations.AddIndex(
            model_name="turn",
            index=models.Index(
                condition=models.Q(("state__in", ["queued", "running", "waiting"])),
                fields=["conversation", "id"],
                name="turn_open",
            ),
        ),
    ]
