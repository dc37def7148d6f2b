from django.db import migrations


class Migration(migrations.Migration):
    """The table stays as it is; it belongs to the app `feedback` from now on."""

    dependencies = [
        ("chat", "0023_forget_deleted_calls"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.DeleteModel(name="Feedback")],
        ),
    ]
