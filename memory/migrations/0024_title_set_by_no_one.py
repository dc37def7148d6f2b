from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0023_temperature'),
    ]

    operations = [
        migrations.AlterField(
            model_name='conversation',
            name='title_set_by',
            field=models.CharField(blank=True, choices=[('', 'no one'), ('auto', 'the site'), ('user', 'a person'), ('copy', 'the conversation or file it was copied from')], default='', max_length=4),
        ),
    ]
