from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tools", "0002_pending"),
    ]

    operations = [
        migrations.AddField(
            model_name="resultfile",
            name="source",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
    ]
