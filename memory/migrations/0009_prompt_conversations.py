"""Whose the texts are that were sent with conversations; those of no one go."""

from django.db import migrations, models

from memory import prompts


def link_all(apps, schema_editor):
    models = (apps.get_model("memory", name) for name in ("Prompt", "ModelCall"))
    prompts.link_all(*models)



class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0008_call_newest'),
    ]

    operations = [
        migrations.AddField(
            model_name='prompt',
            name='conversations',
            field=models.ManyToManyField(related_name='prompts', to='memory.conversation'),
        ),
        migrations.RunPython(link_all, migrations.RunPython.noop),
    ]
