from django.db import migrations


class Migration(migrations.Migration):
    """The table stays as it is; it belongs to the app `attachments` from now on."""

    dependencies = [
        ("memory", "0030_index_forms_of_words"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.DeleteModel(name="Upload")],
        ),
    ]
