from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tools", "0001_initial"),
    ]

    operations = [
        migrations.AlterField(
            model_name="toolcall",
            name="state",
            field=models.CharField(
                choices=[
                    ("asked", "Asked"),
                    ("waiting", "Waiting for consent"),
                    ("running", "Running"),
                    ("done", "Done"),
                    ("failed", "Failed"),
                    ("late", "Pending"),
                    ("cancelled", "Cancelled"),
                    ("unknown", "Unknown"),
                ],
                default="asked",
                max_length=9,
            ),
        ),
    ]
