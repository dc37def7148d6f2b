from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("chat", "0016_preferences_time_zone"),
    ]

    operations = [
        migrations.RemoveIndex(model_name="toolcall", name="tool_call_late"),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(
                condition=models.Q(("next_look_at__isnull", False)),
                fields=["next_look_at"],
                name="tool_call_due",
            ),
        ),
    ]
