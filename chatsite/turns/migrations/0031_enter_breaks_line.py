from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0030_error_names_tool'),
    ]

    operations = [
        migrations.AddField(
            model_name='preferences',
            name='enter_breaks_line',
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
