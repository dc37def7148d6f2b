from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0014_preferences_tool_cards'),
    ]

    operations = [
        migrations.AddField(
            model_name='toolcall',
            name='tool_digest',
            field=models.CharField(blank=True, db_default='', max_length=64),
        ),
    ]
