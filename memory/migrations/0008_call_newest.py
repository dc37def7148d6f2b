"""An index for the figures of a range of days."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memory", "0007_history_seals")]

    operations = [
        migrations.AddIndex(
            model_name="modelcall",
            index=models.Index(fields=["-created_at", "-id"], name="call_newest"),
        ),
    ]
