from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0029_preferred_facts'),
    ]

    operations = [
        migrations.AlterField(
            model_name='turn',
            name='error',
            field=models.CharField(blank=True, help_text='Code of the error.', max_length=100),
        ),
    ]
