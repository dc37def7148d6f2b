"""Trials are called experiments, in what is stored of their results too."""

import django.db.models.deletion
from django.db import migrations, models


def rename_keys(value, names):
    if isinstance(value, dict):
        return {names.get(key, key): rename_keys(v, names) for key, v in value.items()}
    if isinstance(value, list):
        return [rename_keys(each, names) for each in value]
    return value


def rename_in_results(apps, names):
    rows = apps.get_model("desk", "Experiment").objects.exclude(result=None)
    for row in rows.iterator(chunk_size=20):
        row.result = rename_keys(row.result, names)
        row.save(update_fields=["result"])


def forwards(apps, schema_editor):
    rename_in_results(apps, {"trial": "experiment"})


def backwards(apps, schema_editor):
    rename_in_results(apps, {"experiment": "trial"})


class Migration(migrations.Migration):
    dependencies = [("desk", "0003_blank_trials")]

    operations = [
        migrations.RenameModel("Trial", "Experiment"),
        migrations.AlterModelOptions(
            name='experiment',
            options={'default_permissions': (), 'ordering': ['-id'], 'verbose_name': 'policy experiment', 'verbose_name_plural': 'policy experiments'},
        ),
        migrations.AlterField(
            model_name='experiment',
            name='conversation',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='experiments', to='memory.conversation'),
        ),
        migrations.RunPython(forwards, backwards),
    ]
