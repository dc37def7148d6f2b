from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0004_recall_place'),
    ]

    operations = [
        migrations.AddField(
            model_name='conversation',
            name='set_aside',
            field=models.JSONField(blank=True, null=True),
        ),
    ]
