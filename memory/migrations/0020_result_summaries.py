from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("memory", "0019_index_passages"),
    ]

    operations = [
        migrations.AlterField(
            model_name="modelcall",
            name="purpose",
            field=models.CharField(
                choices=[
                    ("reply", "Reply"),
                    ("summary", "Summary"),
                    ("title", "Title"),
                    ("result", "Result"),
                ],
                max_length=7,
            ),
        ),
    ]
