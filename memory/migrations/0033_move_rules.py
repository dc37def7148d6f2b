from django.db import migrations


class Migration(migrations.Migration):
    """The table stays as it is; it belongs to the app `rules` from now on."""

    dependencies = [
        ("memory", "0032_move_labels"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.DeleteModel(name="Rule")],
        ),
    ]
