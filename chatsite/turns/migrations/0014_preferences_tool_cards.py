from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("chat", "0013_turn_room"),
    ]

    operations = [
        migrations.AddField(
            model_name="preferences",
            name="tool_cards",
            field=models.CharField(
                choices=[("card", "As folded cards"), ("line", "As lines")],
                db_default="card",
                default="card",
                max_length=4,
            ),
        ),
    ]
