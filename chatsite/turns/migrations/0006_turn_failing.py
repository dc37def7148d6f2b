"""An index for the turns that failed in a range of days."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chat", "0005_permissions")]

    operations = [
        migrations.AddIndex(
            model_name="turn",
            index=models.Index(
                fields=["-created_at"],
                condition=models.Q(state__in=["failed", "truncated", "interrupted"]),
                name="turn_failing",
            ),
        ),
    ]
