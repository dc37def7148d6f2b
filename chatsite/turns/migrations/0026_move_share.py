from django.db import migrations


class Migration(migrations.Migration):
    """The table stays as it is; it belongs to the app `sharing` from now on."""

    dependencies = [
        ("chat", "0025_unread_reminders"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.DeleteModel(name="Share")],
        ),
    ]
