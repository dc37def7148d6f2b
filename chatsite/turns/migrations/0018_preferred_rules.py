from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0017_tool_call_due"),
    ]

    operations = [
        migrations.AddField(
            model_name="preferences",
            name="own_rules",
            field=models.TextField(blank=True, db_default="", default=""),
        ),
        migrations.AddField(
            model_name="preferences",
            name="rules",
            field=models.CharField(blank=True, db_default="", default="", max_length=5),
        ),
        migrations.AddField(
            model_name="preferences",
            name="with_own_rules",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
