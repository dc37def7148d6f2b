from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("chat", "0015_consent"),
    ]

    operations = [
        migrations.AddField(
            model_name="preferences",
            name="time_zone",
            field=models.CharField(
                blank=True, db_default="", default="", editable=False, max_length=64
            ),
        ),
    ]
