from django.db import migrations


class Migration(migrations.Migration):
    """The tables stay as they are; they belong to the app `labels` from now on."""

    dependencies = [
        ("memory", "0031_move_uploads"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.DeleteModel(name="Label")],
        ),
    ]
