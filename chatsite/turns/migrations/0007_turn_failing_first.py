"""An index in whose order the admin lists turns: what went wrong first."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chat", "0006_turn_failing")]

    operations = [
        migrations.AddIndex(
            model_name="turn",
            index=models.Index(
                models.OrderBy(
                    models.Func(
                        "state",
                        template="CASE WHEN %(expressions)s IN "
                        "('failed', 'truncated', 'interrupted') THEN 0 ELSE 1 END",
                        output_field=models.SmallIntegerField(),
                    )
                ),
                models.OrderBy(models.F("id"), descending=True),
                name="turn_failing_first",
            ),
        ),
    ]
